// The small checkpoints of tests/data/pocket_tts with their reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "../count_within.h"
#include "base/mapped_file.h"
#include "models/mimi/config.h"
#include "models/mimi/seanet.h"
#include "models/pocket_tts/config_file.h"
#include "stages.h"
#include "tensor/safetensors.h"

namespace syrinx::mimi {

inline constexpr const char* kModels[] = {"english",     "english_24l", "english_2026-01", "english_drifting",
                                          "english_18m", "english_7m",  "english_2m",      "flow_matching"};

inline std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/pocket_tts/" + name; }

inline Config config_of(const std::string& name) {
  const auto file = MappedFile::open(data(name + "/config.yaml"));
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return {};
  }
  const std::span<const std::byte> bytes = file->bytes();
  const auto parsed = pocket::parse_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
  if (!parsed) ADD_FAILURE() << parsed.error().message;
  return parsed ? parsed->config.mimi : Config{};
}

class TensorFile {
 public:
  explicit TensorFile(const std::string& name) {
    auto file = MappedFile::open(data(name));
    if (!file) {
      ADD_FAILURE() << file.error().message;
      return;
    }
    file_ = std::move(*file);
    auto parsed = Safetensors::parse(file_.bytes(), name);
    if (!parsed) ADD_FAILURE() << parsed.error().message;
    if (parsed) tensors_ = std::move(*parsed);
  }
  const Safetensors& tensors() const { return tensors_; }
  bool has(const std::string& name) const { return tensors_.find(name) != nullptr; }
  std::vector<size_t> dims(const std::string& name) const {
    const TensorRef* const tensor = tensors_.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    return tensor == nullptr ? std::vector<size_t>{0, 1} : tensor->dims;
  }
  std::vector<float> get(const std::string& name) const {
    const TensorRef* const tensor = tensors_.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    return tensor == nullptr ? std::vector<float>() : to_f32(tensor->bytes, tensor->dtype);
  }

 private:
  MappedFile file_;
  Safetensors tensors_;
};

// A checkpoint's tensors with those of the codec in f32, of values that bf16 does not have.
class CodecInF32 {
 public:
  explicit CodecInF32(const std::string& name) : file_(name + "/model.safetensors") {
    std::vector<TensorRef> tensors = file_.tensors().tensors();
    std::vector<std::vector<float>> values(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].name.starts_with("mimi.")) continue;
      values[i] = to_f32(tensors[i].bytes, tensors[i].dtype);
      for (float& value : values[i]) value *= 1.001f;
      tensors[i].dtype = DType::kF32;
      tensors[i].bytes = std::as_bytes(std::span(values[i]));
    }
    bytes_ = write_safetensors(tensors);
    auto parsed = Safetensors::parse(std::as_bytes(std::span(bytes_)), name);
    if (!parsed) ADD_FAILURE() << parsed.error().message;
    if (parsed) tensors_ = std::move(*parsed);
  }
  const Safetensors& tensors() const { return tensors_; }

 private:
  TensorFile file_;
  std::string bytes_;
  Safetensors tensors_;
};

// Of `ours` against `want`, in decibels.
inline double snr_db(const std::vector<float>& ours, const std::vector<float>& want) {
  EXPECT_EQ(ours.size(), want.size());
  double signal = 0, noise = 0;
  for (size_t i = 0; i < std::min(ours.size(), want.size()); ++i) {
    signal += static_cast<double>(want[i]) * want[i];
    noise += std::pow(static_cast<double>(ours[i]) - want[i], 2);
  }
  return 10 * std::log10(signal / noise);
}

}  // namespace syrinx::mimi
