// Shared by the tests of cloning: the small checkpoints, the maker's arrays and the recording that they are of
// (tools/reference/qwen_tts_clone.py).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../base/temp_folder.h"
#include "../count_within.h"
#include "../safetensors_arrays.h"
#include "models/qwen_tts/codec_encoder_weights.h"
#include "models/qwen_tts/config.h"
#include "models/qwen_tts/speaker_weights.h"
#include "tensor/safetensors_shards.h"

namespace syrinx::qwen_tts {

inline std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/qwen_tts/" + name; }

inline constexpr size_t kShort = 32880, kLong = 290400;  // samples of the maker's runs

// Noise and two triangles whose levels change every 50 ms, of whole numbers: recording() of the script.
inline std::vector<float> recording(size_t samples = kLong) {
  std::vector<float> out;
  uint32_t state = 1;
  int noise_level = 0, levels[2] = {}, phases[2] = {};
  for (size_t i = 0; i < samples; ++i) {
    state = state * 1664525 + 1013904223;
    if (i % 1200 == 0) {
      noise_level = static_cast<int>(state >> 28);
      levels[0] = static_cast<int>(state >> 24 & 15);
      levels[1] = static_cast<int>(state >> 20 & 15);
    }
    phases[0] = (phases[0] + 150 + 20 * levels[0]) & 0xffff;
    phases[1] = (phases[1] + 1100 + 230 * levels[1]) & 0xffff;
    const auto triangle = [&](int n) { return std::abs(phases[n] - 32768) - 16384; };
    const int noise = static_cast<int>(state >> 16) - 32768;
    const int sum = noise * noise_level + triangle(0) * levels[0] * 3 + triangle(1) * levels[1];
    out.push_back(static_cast<float>(sum >> 6) / 32768.0f);  // rounded down, as Python divides
  }
  return out;
}

// A checkpoint's tensors, which a test may change.
class Tensors {
 public:
  static Tensors of_base() {
    auto shards = open_safetensors_shards(data("base/model.safetensors.index.json"));
    if (!shards) ADD_FAILURE() << shards.error().message;
    Tensors tensors;
    if (!shards) return tensors;
    tensors.shards_ = std::make_shared<SafetensorsShards>(std::move(*shards));
    for (const TensorRef& tensor : tensors.shards_->tensors) tensors.by_name_[tensor.name] = tensor;
    return tensors;
  }
  static Tensors of_codec() {
    Tensors tensors;
    tensors.file_ = std::make_shared<SafetensorsArrays>(data("speech_tokenizer/model.safetensors"));
    for (const TensorRef& tensor : tensors.file_->tensors().tensors()) tensors.by_name_[tensor.name] = tensor;
    return tensors;
  }

  void remove(const std::string& name) { EXPECT_EQ(by_name_.erase(name), 1u) << name; }
  void reshape(const std::string& name, std::vector<size_t> dims) { by_name_.at(name).dims = std::move(dims); }
  void fill(const std::string& name, float value) {
    TensorRef& tensor = by_name_.at(name);
    std::vector<float>& values = changed_[name];
    values.assign(to_f32(tensor.bytes, tensor.dtype).size(), value);
    tensor.dtype = DType::kF32;
    tensor.bytes = std::as_bytes(std::span(values));
  }

  nn::TensorSource source() const {
    return {.find = [this](std::string_view name) -> const TensorRef* {
      const auto found = by_name_.find(name);
      read_.emplace(name);
      return found == by_name_.end() ? nullptr : &found->second;
    }};
  }
  // Names that begin so and have not been looked for.
  std::vector<std::string> unread(const std::string& prefix) const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : by_name_)
      if (name.starts_with(prefix) && !read_.contains(name)) names.push_back(name);
    return names;
  }

 private:
  std::shared_ptr<const SafetensorsShards> shards_;
  std::shared_ptr<const SafetensorsArrays> file_;
  std::map<std::string, TensorRef, std::less<>> by_name_;
  std::map<std::string, std::vector<float>> changed_;
  mutable std::set<std::string> read_;
};

inline const SafetensorsArrays& maker() {
  static const SafetensorsArrays arrays(data("clone.safetensors"));
  return arrays;
}

inline SpeakerEncoderConfig speaker_config() {
  const auto config = read_config(read_text(data("base/config.json")), "base");
  EXPECT_TRUE(config && config->speaker_encoder) << (config ? "no speaker encoder" : config.error().message);
  return config && config->speaker_encoder ? *config->speaker_encoder : SpeakerEncoderConfig{};
}
inline CodecConfig codec_config() {
  const auto config = read_codec_config(read_text(data("speech_tokenizer/config.json")), "codec");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : CodecConfig{};
}

inline std::shared_ptr<const SpeakerWeights> speaker_weights(const Tensors& tensors = Tensors::of_base()) {
  auto weights = SpeakerWeights::load(tensors.source(), "base", speaker_config());
  if (!weights) ADD_FAILURE() << weights.error().message;
  return weights ? std::make_shared<const SpeakerWeights>(std::move(*weights)) : nullptr;
}
inline std::shared_ptr<const CodecEncoderWeights> encoder_weights(const Tensors& tensors = Tensors::of_codec()) {
  auto weights = CodecEncoderWeights::load(tensors.source(), "codec", codec_config());
  if (!weights) ADD_FAILURE() << weights.error().message;
  return weights ? std::make_shared<const CodecEncoderWeights>(std::move(*weights)) : nullptr;
}

}  // namespace syrinx::qwen_tts
