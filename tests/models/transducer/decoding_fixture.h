// A case of tools/reference/transducer_decoding.py: a small random transducer without its encoder, what an encoder
// might have given, and what the maker's classes make of that.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "models/transducer/decoder_weights.h"
#include "tensor/safetensors.h"
#include "tensor/view.h"

namespace syrinx::transducer {

inline constexpr size_t kFrameWidth = 32;
inline constexpr const char* kDecodingCases[] = {"rnnt", "rnnt_2", "tdt", "tdt_2"};

struct DecodingOptions {
  Precision precision = Precision::kF32;
  size_t max_table_bytes = kMaxGateTableBytes;
  size_t max_symbols = 10;
};

class DecodingCase {
 public:
  explicit DecodingCase(const std::string& name, const DecodingOptions& options = {});

  std::vector<float> floats(const std::string& name) const;
  std::vector<int32_t> ids(const std::string& name) const;
  const Safetensors& arrays() const { return *arrays_; }
  bool has(const std::string& name) const { return arrays_->find(name) != nullptr; }
  // Rows [first, first + count) of the encoder's frames.
  View<const float, 2> frames(size_t first, size_t count) const {
    return {&frames_[first * kFrameWidth], {count, kFrameWidth}};
  }
  View<const float, 2> frames() const { return frames(0, frame_count()); }
  size_t frame_count() const { return frames_.size() / kFrameWidth; }
  const std::shared_ptr<const DecoderWeights>& weights() const { return weights_; }

 private:
  std::unique_ptr<MappedFile> file_;
  std::unique_ptr<Safetensors> arrays_;
  std::vector<float> frames_;
  std::shared_ptr<const DecoderWeights> weights_;
};

}  // namespace syrinx::transducer
