// In which number format a model's large matrices are held and multiplied: the setting `--precision`.  What is small or
// sensitive (norms, biases, the first and the last layer) stays in f32 under all of them; each model says what is what.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace syrinx {

enum class Precision : uint8_t {
  kF32,
  kBf16,  // weights and activations rounded to bf16, sums in f32
  kInt8,  // weights in 7 bits with a scale an output, activations in 8 bits with a scale a row, sums exact
  kInt4,  // weights in 4 bits with a scale a group of inputs, activations as in int8
};
inline constexpr Precision kAllPrecisions[] = {Precision::kF32, Precision::kBf16, Precision::kInt8, Precision::kInt4};

const char* precision_name(Precision precision);  // "f32", "bf16", "int8", "int4"
// The precision of that name; kInvalidArgument for any other text.
Result<Precision> parse_precision(std::string_view name);
// kUnsupported for one that is not among `known`, which a model named `title` is computed in.
Status check_precision(Precision precision, std::span<const Precision> known, const char* title);

}  // namespace syrinx
