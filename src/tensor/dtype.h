// Element types of the containers we read, and the description of one stored tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };
inline constexpr DType kAllDTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                                       DType::kI32, DType::kI16, DType::kI8,  DType::kU64,  DType::kU32,
                                       DType::kU16, DType::kU8,  DType::kBool};

size_t dtype_size(DType dtype);       // bytes of one element
const char* dtype_name(DType dtype);  // "f32", "bf16", "i8", "bool", ...

inline constexpr size_t kMaxRank = 8;

// Product of the dims; nothing when there are more than kMaxRank or the product exceeds 2^48 elements.
std::optional<size_t> element_count(std::span<const size_t> dims);
// "[3, 4]", "[]" for a scalar.
std::string dims_text(std::span<const size_t> dims);

// One tensor in its file: row-major values that the file's bytes own.
struct TensorRef {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<size_t> dims;
  std::span<const std::byte> bytes;  // element_count(dims) * dtype_size(dtype), any alignment
};

float f16_to_f32(uint16_t bits);
float bf16_to_f32(uint16_t bits);
// To the nearest, halves to even; what is too large becomes the largest finite number.  Finite values only.
uint16_t f32_to_f16(float value);
uint16_t f32_to_bf16(float value);  // to the nearest, halves to even; finite values only

// Values of any type as f32, rounded to nearest; `bytes` may have any alignment and its size must be a multiple of the
// element's.
std::vector<float> to_f32(std::span<const std::byte> bytes, DType dtype);
// The same for f32, f16 and bf16 into memory of the caller's, with room for every element.
void floats_to_f32(std::span<const std::byte> bytes, DType dtype, float* out);
// Whether no element of f32, f16 or bf16 is an infinity or not a number.
bool all_finite(std::span<const std::byte> bytes, DType dtype);
// Integers and booleans as i64; kUnsupported for floating-point types.
Result<std::vector<int64_t>> to_i64(std::span<const std::byte> bytes, DType dtype);

}  // namespace syrinx
