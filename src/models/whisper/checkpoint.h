// A Whisper checkpoint's files and the names that its maker gives the tensors (spec whisper.md, section 3):
// CTranslate2's model.bin (slashes; queries, keys and values in one matrix), transformers' model.safetensors, in one
// file or several with an index, OpenAI's .pt.
//
// Load time only; one thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace syrinx::whisper {

// A linear layer: its rows, and its bias unless the maker has none.
struct LinearName {
  std::string weight, bias;
};
struct NormName {
  std::string gamma, beta;
};

// An attention whose inputs are projected by some matrices side by side.
struct AttentionNames {
  NormName norm;
  std::vector<LinearName> query;      // empty where it is part of key_value
  std::vector<LinearName> key_value;  // with the queries in front for self-attention
  LinearName out;
};

struct LayerNames {
  AttentionNames self, cross;  // cross: of decoders
  NormName ffn_norm;
  LinearName ffn1, ffn2;
};

struct ModelNames {
  LinearName conv1, conv2;
  std::string encoder_positions, decoder_positions, embedding;
  NormName encoder_norm, decoder_norm;
};

class Checkpoint {
 public:
  enum class Layout { kCTranslate2, kTransformers, kOpenAi };

  // By what the file begins with, but for an index of safetensors, which its name tells.  Errors of MappedFile,
  // Ct2File, Safetensors, open_safetensors_shards() and TorchFile; kUnsupported: a model.bin of another family, or
  // options that no Whisper has.
  static Result<Checkpoint> open(const std::string& path);
  static Result<Checkpoint> read(MappedFile file);

  Layout layout() const { return layout_; }
  const std::string& name() const { return name_; }  // of the file, or of the index to several
  std::span<const MappedFile> files() const { return files_; }
  // Null if there is no such tensor.
  const TensorRef* find(std::string_view name) const;
  // A whole number of one element; `otherwise` if there is none.
  int64_t number(std::string_view name, int64_t otherwise) const;

  ModelNames names() const;
  LayerNames layer(bool decoder, size_t index) const;

 private:
  Status read_ct2();
  void take(std::span<const TensorRef> tensors);
  Status read_torch();
  const MappedFile& file() const { return files_.front(); }

  std::string name_;
  std::vector<MappedFile> files_;
  Layout layout_ = Layout::kCTranslate2;
  std::map<std::string, TensorRef, std::less<>> tensors_;
};

}  // namespace syrinx::whisper
