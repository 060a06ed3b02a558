// The weights of Kokoro as a file stores them, under the maker's PyTorch names, from either published container:
// the quantised ONNX export (bound by node name and wiring, never by the exporter's numbers) or kokoro-v1_0.pth.
// Specification: Kokoro, sections 1 and 6.
//
// Names are those of the state dicts with their module in front: "bert.embeddings.word_embeddings.weight",
// "bert_encoder.weight", "predictor.text_encoder.lstms.0.weight_ih_l0_reverse", "predictor.F0.1.pool.weight",
// "decoder.generator.resblocks.4.convs1.2.weight", "decoder.generator.resblocks.4.alpha1.0", ...
// Shapes and layouts are PyTorch's whatever the file: linear [out, in], conv [out, in / groups, k], transposed conv
// [in, out / groups, k], LSTM weight_ih_l0 [4H, in] with gates i, f, g, o.  Weight norm is resolved.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace syrinx::kokoro {

struct StoredWeight {
  std::vector<size_t> shape;
  // Exactly one of the two forms is filled.
  std::vector<float> f32;
  // real = scale[o] * (q - zero), q in [-64, 64]; scale has one value, or one for each index of the first axis.
  // A u8 weight is stored here as w - 64 with zero = zero_point - 64.
  std::vector<int8_t> q;
  std::vector<float> scale;
  int zero = 0;

  bool quantised() const { return !q.empty(); }
  std::vector<float> dequantised() const;  // in the order of `shape`
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  // Reads the directory only; kDataLoss or kUnsupported with the file's name when it is not a Kokoro checkpoint.
  static Result<std::unique_ptr<Checkpoint>> open(MappedFile file);
  virtual const std::string& path() const = 0;
  virtual bool contains(std::string_view name) const = 0;
  // Every name that read() knows, sorted; also the few that the model does not use.
  virtual std::vector<std::string> names() const = 0;
  // PyTorch's shape of a weight, before it is read; kDataLoss when there is none of that name.
  virtual Result<std::vector<size_t>> shape(std::string_view name) const = 0;
  // Copies one weight out and lets its pages go; a missing name or another shape than `shape` is kDataLoss naming both.
  virtual Result<StoredWeight> read(std::string_view name, const std::vector<size_t>& shape) const = 0;
  // Hash of the whole content, the key of the packed cache (sha256, hex).
  virtual Result<std::string> content_hash() const = 0;
};

}  // namespace syrinx::kokoro
