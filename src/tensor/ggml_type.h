// The types in which GGUF stores tensors: plain numbers, and blocks of 32 or 256 weights that share scales.
// Source of the facts: ggml's ggml-common.h (the blocks) and the dequantisation of its Python package `gguf`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace syrinx {

enum class GgmlType : uint8_t { kF32, kF16, kBF16, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ5_K, kQ6_K };
inline constexpr GgmlType kAllGgmlTypes[] = {GgmlType::kF32,  GgmlType::kF16,  GgmlType::kBF16, GgmlType::kQ4_0,
                                             GgmlType::kQ4_1, GgmlType::kQ5_0, GgmlType::kQ5_1, GgmlType::kQ8_0,
                                             GgmlType::kQ4_K, GgmlType::kQ5_K, GgmlType::kQ6_K};

// Consecutive weights of a row and the bytes that hold them; of plain numbers one weight.
struct GgmlBlock {
  size_t weights = 0, bytes = 0;
};
GgmlBlock ggml_block(GgmlType type);
const char* ggml_name(GgmlType type);  // "Q4_1"

// By the number that stands in files; nothing for a type that is not read here.
std::optional<GgmlType> find_ggml_type(uint32_t number);
// The name that ggml gives to any of its numbers, or nothing.
std::optional<std::string_view> ggml_number_name(uint32_t number);

// Plain numbers as the other containers know them; nothing for blocks.
std::optional<DType> plain_dtype(GgmlType type);

// All weights of whole blocks, at any alignment, into memory of the caller's.
void ggml_to_f32(std::span<const std::byte> blocks, GgmlType type, float* out);

}  // namespace syrinx
