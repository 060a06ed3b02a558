#include "tensor/ggml_type.h"

#include <cstring>

#include "base/check.h"

namespace syrinx {
namespace {

constexpr size_t kSmall = 32, kLarge = 256;  // weights of a block
constexpr size_t kPart = 32;                 // weights of a large block that share a scale and a least value

struct Entry {
  GgmlType type;
  uint32_t number;  // in files
  const char* name;
  GgmlBlock block;
};
constexpr Entry kEntries[] = {
    {GgmlType::kF32, 0, "F32", {1, 4}},
    {GgmlType::kF16, 1, "F16", {1, 2}},
    {GgmlType::kBF16, 30, "BF16", {1, 2}},
    {GgmlType::kQ4_0, 2, "Q4_0", {kSmall, 2 + 16}},
    {GgmlType::kQ4_1, 3, "Q4_1", {kSmall, 4 + 16}},
    {GgmlType::kQ5_0, 6, "Q5_0", {kSmall, 2 + 4 + 16}},
    {GgmlType::kQ5_1, 7, "Q5_1", {kSmall, 4 + 4 + 16}},
    {GgmlType::kQ8_0, 8, "Q8_0", {kSmall, 2 + 32}},
    {GgmlType::kQ4_K, 12, "Q4_K", {kLarge, 4 + 12 + 128}},
    {GgmlType::kQ5_K, 13, "Q5_K", {kLarge, 4 + 12 + 32 + 128}},
    {GgmlType::kQ6_K, 14, "Q6_K", {kLarge, 128 + 64 + 16 + 2}},
};
const Entry& entry_of(GgmlType type) { return kEntries[static_cast<size_t>(type)]; }

float f16_at(const uint8_t* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return f16_to_f32(bits);
}
uint32_t u32_at(const uint8_t* bytes) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return bits;
}

// Q4_0, Q5_0: scale, [fifth bits], nibbles; weight = scale * (number - 2^(bits - 1)).  Q4_1, Q5_1: scale, least value,
// ...; weight = scale * number + least.  Byte j holds the numbers j and j + 16.
template <bool fifth_bit, bool least>
void small_block(const uint8_t* block, float* out) {
  const float scale = f16_at(block), offset = least ? f16_at(block + 2) : 0.0f;
  const uint8_t* at = block + (least ? 4 : 2);
  const uint32_t high = fifth_bit ? u32_at(at) : 0;
  const uint8_t* const nibbles = at + (fifth_bit ? 4 : 0);
  constexpr int kMiddle = least ? 0 : fifth_bit ? 16 : 8;
  for (uint32_t j = 0; j < kSmall / 2; ++j) {
    const int low_number = static_cast<int>((nibbles[j] & 15u) | ((high >> j & 1u) << 4)) - kMiddle;
    const int high_number = static_cast<int>((nibbles[j] >> 4) | ((high >> (j + 16) & 1u) << 4)) - kMiddle;
    out[j] = scale * static_cast<float>(low_number) + offset;
    out[j + kSmall / 2] = scale * static_cast<float>(high_number) + offset;
  }
}

void q8_0_block(const uint8_t* block, float* out) {
  const float scale = f16_at(block);
  for (size_t j = 0; j < kSmall; ++j) out[j] = scale * static_cast<float>(static_cast<int8_t>(block[2 + j]));
}

// Scale and least value of part j, 6 bits each: of the first four parts in the low bits of bytes j and j + 4; of the
// others the low four bits in byte j + 4, the high two above those of the part four before.
struct PartScales {
  uint32_t scale, least;
};
PartScales part_scales(const uint8_t* packed, size_t j) {
  if (j < 4) return {packed[j] & 63u, packed[j + 4] & 63u};
  return {(packed[j + 4] & 15u) | (packed[j - 4] >> 6 << 4),
          static_cast<uint32_t>(packed[j + 4] >> 4 | packed[j] >> 6 << 4)};
}

// Q4_K, Q5_K: scale, scale of the least values, scales of eight parts, [fifth bits], nibbles.  Two parts share 32 bytes
// of nibbles; bit j of the fifth bits' bytes is part j's.
template <bool fifth_bit>
void large_block(const uint8_t* block, float* out) {
  const float scale = f16_at(block), least_scale = f16_at(block + 2);
  const uint8_t* const packed = block + 4;
  const uint8_t* const fifth = packed + 12;
  const uint8_t* const nibbles = fifth + (fifth_bit ? kPart : 0);
  for (size_t j = 0; j < kLarge / kPart; ++j) {
    const PartScales part = part_scales(packed, j);
    const float d = scale * static_cast<float>(part.scale), m = least_scale * static_cast<float>(part.least);
    for (size_t i = 0; i < kPart; ++i) {
      uint32_t number = nibbles[j / 2 * kPart + i] >> (j % 2 * 4) & 15u;
      if (fifth_bit) number |= (fifth[i] >> j & 1u) << 4;
      out[j * kPart + i] = d * static_cast<float>(number) - m;
    }
  }
}

// Q6_K: low four bits, high two bits, scales of 16 parts in 8 bits, scale; weight = scale * part's * (number - 32).
// Each half of the block holds four runs of 32 weights: their low bits are the nibbles of two runs of bytes, their high
// ones the bit pairs of one.
void q6_k_block(const uint8_t* block, float* out) {
  const uint8_t *const low = block, *const high = block + 128, *const parts = block + 192;
  const float scale = f16_at(block + 208);
  for (size_t half = 0; half < 2; ++half)
    for (size_t run = 0; run < 4; ++run)
      for (size_t i = 0; i < kPart; ++i) {
        const uint32_t bits = low[half * 64 + run % 2 * kPart + i] >> (run / 2 * 4) & 15u;
        const uint32_t top = high[half * kPart + i] >> (run * 2) & 3u;
        const auto part = static_cast<int8_t>(parts[half * 8 + run * 2 + i / 16]);
        out[half * 128 + run * kPart + i] =
            scale * static_cast<float>(part) * static_cast<float>(static_cast<int>(bits | top << 4) - 32);
      }
}

template <class Read>
void each_block(std::span<const std::byte> blocks, const GgmlBlock& block, float* out, Read&& read) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(blocks.data());
  for (size_t n = 0; n < blocks.size() / block.bytes; ++n) read(bytes + n * block.bytes, out + n * block.weights);
}

}  // namespace

GgmlBlock ggml_block(GgmlType type) { return entry_of(type).block; }
const char* ggml_name(GgmlType type) { return entry_of(type).name; }

std::optional<GgmlType> find_ggml_type(uint32_t number) {
  for (const Entry& entry : kEntries)
    if (entry.number == number) return entry.type;
  return std::nullopt;
}

std::optional<std::string_view> ggml_number_name(uint32_t number) {
  constexpr const char* kNames[] = {
      "F32",   "F16",    "Q4_0",  "Q4_1",  nullptr, nullptr,   "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
      "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
      "IQ2_S", "IQ4_XS", "I8",    "I16",   "I32",   "I64",     "F64",    "IQ1_M",   "BF16",  nullptr,  nullptr,
      nullptr, "TQ1_0",  "TQ2_0", nullptr, nullptr, nullptr,   "MXFP4",  "NVFP4",   "Q1_0"};
  if (number >= std::size(kNames) || kNames[number] == nullptr) return std::nullopt;
  return kNames[number];
}

std::optional<DType> plain_dtype(GgmlType type) {
  switch (type) {
    case GgmlType::kF32: return DType::kF32;
    case GgmlType::kF16: return DType::kF16;
    case GgmlType::kBF16: return DType::kBF16;
    default: return std::nullopt;
  }
}

void ggml_to_f32(std::span<const std::byte> blocks, GgmlType type, float* out) {
  const GgmlBlock block = ggml_block(type);
  SYRINX_CHECK(blocks.size() % block.bytes == 0, "{} bytes of {}", blocks.size(), ggml_name(type));
  switch (type) {
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16: floats_to_f32(blocks, *plain_dtype(type), out); return;
    case GgmlType::kQ4_0: each_block(blocks, block, out, small_block<false, false>); return;
    case GgmlType::kQ4_1: each_block(blocks, block, out, small_block<false, true>); return;
    case GgmlType::kQ5_0: each_block(blocks, block, out, small_block<true, false>); return;
    case GgmlType::kQ5_1: each_block(blocks, block, out, small_block<true, true>); return;
    case GgmlType::kQ8_0: each_block(blocks, block, out, q8_0_block); return;
    case GgmlType::kQ4_K: each_block(blocks, block, out, large_block<false>); return;
    case GgmlType::kQ5_K: each_block(blocks, block, out, large_block<true>); return;
    case GgmlType::kQ6_K: each_block(blocks, block, out, q6_k_block); return;
  }
}

}  // namespace syrinx
