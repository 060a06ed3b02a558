#include "tensor/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace syrinx {
namespace {

constexpr size_t kMaxElements = size_t{1} << 48;

template <class From, class To, class Convert>
std::vector<To> convert(std::span<const std::byte> bytes, Convert&& one) {
  SYRINX_CHECK(bytes.size() % sizeof(From) == 0, "{} bytes of {}-byte elements", bytes.size(), sizeof(From));
  std::vector<To> out(bytes.size() / sizeof(From));
  for (size_t i = 0; i < out.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    out[i] = one(value);
  }
  return out;
}

// Whether an element's exponent is all ones is one integer operation; no branch, so that the loop can be vectorised.
template <class Bits>
bool none_has(std::span<const std::byte> bytes, Bits exponent) {
  Bits found = 0;
  for (size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    Bits value;
    std::memcpy(&value, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    found |= static_cast<Bits>((value & exponent) == exponent);
  }
  return found == 0;
}

template <class From, class Convert>
void convert_to(std::span<const std::byte> bytes, float* out, Convert&& one) {
  for (size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    out[i] = one(value);
  }
}

template <class From, class To>
std::vector<To> cast(std::span<const std::byte> bytes) {
  return convert<From, To>(bytes, [](From value) { return static_cast<To>(value); });
}

}  // namespace

size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
    case DType::kU64: return 8;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32: return 4;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
    case DType::kU16: return 2;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: return 1;
  }
  return 0;
}

const char* dtype_name(DType dtype) {
  constexpr const char* kNames[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "i16",
                                    "i8",  "u64", "u32", "u16",  "u8",  "bool"};
  return kNames[static_cast<size_t>(dtype)];
}

std::optional<size_t> element_count(std::span<const size_t> dims) {
  if (dims.size() > kMaxRank) return std::nullopt;
  size_t count = 1;
  bool empty = false;
  for (const size_t dim : dims) {
    empty |= dim == 0;
    if (dim > kMaxElements || (dim != 0 && count > kMaxElements / dim)) return std::nullopt;
    if (dim != 0) count *= dim;
  }
  return empty ? 0 : count;
}

std::string dims_text(std::span<const size_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {  // zero and subnormal numbers
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_f16(float value) {
  constexpr uint16_t kLargest = 0x7BFF;
  constexpr float kLeastNormal = 0x1p-14f, kTooLarge = 65520.0f;  // half a step above the largest
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 31 << 15);
  const float size = std::fabs(value);
  if (size >= kTooLarge) return sign | kLargest;
  if (size < kLeastNormal) return sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24f));
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  return sign | static_cast<uint16_t>(((magnitude + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10));
}

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

std::vector<float> to_f32(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kF64: return cast<double, float>(bytes);
    case DType::kF32: return cast<float, float>(bytes);
    case DType::kF16: return convert<uint16_t, float>(bytes, f16_to_f32);
    case DType::kBF16: return convert<uint16_t, float>(bytes, bf16_to_f32);
    case DType::kI64: return cast<int64_t, float>(bytes);
    case DType::kI32: return cast<int32_t, float>(bytes);
    case DType::kI16: return cast<int16_t, float>(bytes);
    case DType::kI8: return cast<int8_t, float>(bytes);
    case DType::kU64: return cast<uint64_t, float>(bytes);
    case DType::kU32: return cast<uint32_t, float>(bytes);
    case DType::kU16: return cast<uint16_t, float>(bytes);
    case DType::kU8: return cast<uint8_t, float>(bytes);
    case DType::kBool: return convert<uint8_t, float>(bytes, [](uint8_t value) { return value != 0 ? 1.0f : 0.0f; });
  }
  return {};
}

void floats_to_f32(std::span<const std::byte> bytes, DType dtype, float* out) {
  SYRINX_CHECK(bytes.size() % dtype_size(dtype) == 0, "{} bytes of {}", bytes.size(), dtype_name(dtype));
  switch (dtype) {
    case DType::kF32: std::memcpy(out, bytes.data(), bytes.size()); return;
    case DType::kF16: return convert_to<uint16_t>(bytes, out, f16_to_f32);
    case DType::kBF16: return convert_to<uint16_t>(bytes, out, bf16_to_f32);
    default: SYRINX_CHECK(false, "{} is not a type of weights", dtype_name(dtype));
  }
}

bool all_finite(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kF32: return none_has<uint32_t>(bytes, 0x7F800000u);
    case DType::kF16: return none_has<uint16_t>(bytes, 0x7C00u);
    case DType::kBF16: return none_has<uint16_t>(bytes, 0x7F80u);
    default: SYRINX_CHECK(false, "{} is not a type of weights", dtype_name(dtype));
  }
  return false;
}

Result<std::vector<int64_t>> to_i64(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kI64:
    case DType::kU64: return cast<int64_t, int64_t>(bytes);
    case DType::kI32: return cast<int32_t, int64_t>(bytes);
    case DType::kI16: return cast<int16_t, int64_t>(bytes);
    case DType::kI8: return cast<int8_t, int64_t>(bytes);
    case DType::kU32: return cast<uint32_t, int64_t>(bytes);
    case DType::kU16: return cast<uint16_t, int64_t>(bytes);
    case DType::kU8: return cast<uint8_t, int64_t>(bytes);
    case DType::kBool:
      return convert<uint8_t, int64_t>(bytes, [](uint8_t value) { return value != 0 ? int64_t{1} : int64_t{0}; });
    default: return fail(Code::kUnsupported, "values of type {} are not integers", dtype_name(dtype));
  }
}

}  // namespace syrinx
