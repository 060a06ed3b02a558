// The file that carries Silero VAD v6.2 for whisper.cpp, `ggml-silero-v6.2.0.bin` (spec silero-vad.md, sections 1 and
// 2): a header of fixed numbers, then fifteen tensors in records without padding or count, little-endian.
//
// Only this one model is taken: a header, a name, a shape or a type that differs is refused, each tensor must be there
// once, and the file must end with a record.  Nothing of the file is trusted before it is checked.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx::silero {

inline constexpr size_t kBasisSamples = 256;            // of the short-time Fourier transform
inline constexpr size_t kBins = kBasisSamples / 2 + 1;  // 129
inline constexpr size_t kHidden = 128;                  // of the LSTM, and of what it reads
inline constexpr size_t kEncoderLayers = 4, kEncoderTaps = 3;

struct EncoderShape {
  size_t inputs = 0, outputs = 0;
};
inline constexpr std::array<EncoderShape, kEncoderLayers> kEncoder = {
    {{kBins, 128}, {128, 64}, {64, 64}, {64, kHidden}}};

// All values of the file as f32, in C order.
struct Tensors {
  struct Conv {
    std::vector<float> weight;  // [outputs, inputs, 3]
    std::vector<float> bias;    // [outputs]
  };
  std::vector<float> basis;  // [258, 1, 256]: 129 rows of windowed cosines, then as many of negated sines
  std::array<Conv, kEncoderLayers> encoder;
  std::vector<float> input_weight, recurrent_weight;  // [512, 128] of the LSTM: gates i, f, g, o
  std::vector<float> input_bias, recurrent_bias;      // [512]
  std::vector<float> output_weight;                   // [128]
  std::vector<float> output_bias;                     // [] (one value)
};

// `name` is used in messages.  kDataLoss for what is no such file or damaged, kUnsupported for another model in the
// same container.
Result<Tensors> parse_container(std::span<const std::byte> bytes, const std::string& name);

}  // namespace syrinx::silero
