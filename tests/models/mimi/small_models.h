// The small checkpoints of tests/data/pocket_tts with their reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "../count_within.h"
#include "../safetensors_arrays.h"
#include "base/mapped_file.h"
#include "kernels/dispatch.h"
#include "kernels/row_conv.h"
#include "models/mimi/config.h"
#include "models/mimi/seanet.h"
#include "models/pocket_tts/config_file.h"
#include "stages.h"
#include "tensor/precision.h"
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

// The arrays of a file below data().
struct TensorFile : SafetensorsArrays {
  explicit TensorFile(const std::string& name) : SafetensorsArrays(data(name)) {}
  std::vector<size_t> dims(const std::string& name) const {
    const TensorRef* const tensor = tensors().find(name);
    EXPECT_NE(tensor, nullptr) << name;
    return tensor == nullptr ? std::vector<size_t>{0, 1} : tensor->dims;
  }
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

// Signal to noise of `ours` against `want`, in decibels.
inline double snr_db(const std::vector<float>& ours, const std::vector<float>& want) {
  EXPECT_EQ(ours.size(), want.size());
  double signal = 0, noise = 0;
  for (size_t i = 0; i < std::min(ours.size(), want.size()); ++i) {
    signal += static_cast<double>(want[i]) * want[i];
    noise += std::pow(static_cast<double>(ours[i]) - want[i], 2);
  }
  return 10 * std::log10(signal / noise);
}

// Bounds for both halves of the codec (docs/pocket_tts.md, "What the narrow precisions cost").  run(precision) gives a
// half's numbers on the checkpoint `name`.
//
// All narrow precisions are one, near f32's where bf16 is multiplied and its own elsewhere.
template <class Run>
void expect_narrow_stays_near(const char* name, bool reads_bf16, const Run& run) {
  constexpr double kLeastSnrDb = 44, kMostApart = 0.01;
  const std::vector<float> f32 = run(Precision::kF32);
  const std::vector<float> bf16 = run(Precision::kBf16);
  EXPECT_EQ(run(Precision::kInt8), bf16);
  EXPECT_EQ(run(Precision::kInt4), bf16);
  ASSERT_EQ(reads_bf16, kernels::bf16_rows_are_faster());
  if (!kernels::bf16_rows_are_faster()) {
    EXPECT_EQ(bf16, f32);
    return;
  }
  EXPECT_NE(bf16, f32);
  const double snr = snr_db(bf16, f32), worst = largest_difference(bf16, f32);
  EXPECT_GE(snr, kLeastSnrDb);
  EXPECT_LE(worst, kMostApart);
  std::printf("%s: bf16 beside f32: SNR %.1f dB, worst %.1e of the largest\n", name, snr, worst);
}

template <class Weights>
void expect_f32_weights_are_multiplied_in_f32() {
  const CodecInF32 english("english");
  const auto weights = Weights::load(english.tensors(), "english in f32", config_of("english"), Precision::kBf16);
  ASSERT_TRUE(weights.has_value()) << weights.error().message;
  EXPECT_FALSE(reads_bf16(*weights));
}

template <class Run>
void expect_f32_without_bf16_instructions(const Run& run) {
  kernels::force_target_for_test(0, false);
  const std::vector<float> f32 = run(Precision::kF32);
  const std::vector<float> bf16 = run(Precision::kBf16);
  kernels::force_target_for_test(0, true);
  EXPECT_EQ(bf16, f32);
  EXPECT_EQ(run(Precision::kF32), f32);
}

}  // namespace syrinx::mimi
