// For each head the keys are transposed into panels of two vectors and the values copied together; then blocks of six
// queries run through both products with the same 6 x 2 register tile, which fits sixteen registers.
#include "kernels/attention.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/softmax-inl.h"

#ifndef SYRINX_KERNELS_CPU_ATTENTION_ONCE_
#define SYRINX_KERNELS_CPU_ATTENTION_ONCE_
namespace syrinx::kernels {
namespace {

constexpr size_t kQueryBlock = 6;
// Two of the longest vectors there can be (SVE, 2048 bits): the size of the scratch does not depend on the target.
constexpr size_t kMaxTile = 128;

constexpr size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace
}  // namespace syrinx::kernels
#endif  // SYRINX_KERNELS_CPU_ATTENTION_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// tile[r][0, 2 lanes) = sum over t < depth of a[r][t] * b[t * b_stride + ...], for six rows r.
HWY_INLINE void multiply_tile(const float* const* a, const float* HWY_RESTRICT b, size_t b_stride, size_t depth,
                              float* HWY_RESTRICT tile, size_t tile_stride) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const float *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3], *a4 = a[4], *a5 = a[5];
  auto s00 = hn::Zero(d), s01 = hn::Zero(d), s10 = hn::Zero(d), s11 = hn::Zero(d), s20 = hn::Zero(d), s21 = hn::Zero(d);
  auto s30 = hn::Zero(d), s31 = hn::Zero(d), s40 = hn::Zero(d), s41 = hn::Zero(d), s50 = hn::Zero(d), s51 = hn::Zero(d);
  for (size_t t = 0; t < depth; ++t, b += b_stride) {
    const auto b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + lanes);
    auto x = hn::Set(d, a0[t]);
    s00 = hn::MulAdd(x, b0, s00);
    s01 = hn::MulAdd(x, b1, s01);
    x = hn::Set(d, a1[t]);
    s10 = hn::MulAdd(x, b0, s10);
    s11 = hn::MulAdd(x, b1, s11);
    x = hn::Set(d, a2[t]);
    s20 = hn::MulAdd(x, b0, s20);
    s21 = hn::MulAdd(x, b1, s21);
    x = hn::Set(d, a3[t]);
    s30 = hn::MulAdd(x, b0, s30);
    s31 = hn::MulAdd(x, b1, s31);
    x = hn::Set(d, a4[t]);
    s40 = hn::MulAdd(x, b0, s40);
    s41 = hn::MulAdd(x, b1, s41);
    x = hn::Set(d, a5[t]);
    s50 = hn::MulAdd(x, b0, s50);
    s51 = hn::MulAdd(x, b1, s51);
  }
  const auto store = [&](size_t row, auto first, auto second) HWY_ATTR {
    hn::StoreU(first, d, tile + row * tile_stride);
    hn::StoreU(second, d, tile + row * tile_stride + lanes);
  };
  store(0, s00, s01);
  store(1, s10, s11);
  store(2, s20, s21);
  store(3, s30, s31);
  store(4, s40, s41);
  store(5, s50, s51);
}

// Working set of one head; all memory is the caller's scratch.
struct HeadScratch {
  size_t tile;          // columns of a register tile: two vectors
  size_t keys_padded;   // M rounded up to the tile
  size_t width_padded;  // K rounded up to the tile
  float* keys;          // [keys_padded / tile, K, tile]
  float* values;        // [M, width_padded]
  float* scores;        // [6, keys_padded]
  float* result;        // [6, width_padded]
};

HeadScratch lay_out(size_t m, size_t width, float* memory) {
  const hn::ScalableTag<float> d;
  HeadScratch s{};
  s.tile = 2 * hn::Lanes(d);
  s.keys_padded = round_up(m, s.tile);
  s.width_padded = round_up(width, s.tile);
  s.keys = memory;
  s.values = s.keys + s.keys_padded * width;
  s.scores = s.values + m * s.width_padded;
  s.result = s.scores + kQueryBlock * s.keys_padded;
  return s;
}

void pack_head(const AttentionInput& in, size_t column, const HeadScratch& s) {
  const size_t m = in.k.extent(0), width = in.head_width;
  for (size_t first = 0; first < s.keys_padded; first += s.tile) {
    float* panel = s.keys + first * width;
    const size_t here = std::min(s.tile, m - first);
    if (here < s.tile) std::memset(panel, 0, s.tile * width * sizeof(float));
    for (size_t j = 0; j < here; ++j) {
      const float* key = in.k.row(first + j) + column;
      for (size_t t = 0; t < width; ++t) panel[t * s.tile + j] = key[t];
    }
  }
  for (size_t j = 0; j < m; ++j) {
    float* value = s.values + j * s.width_padded;
    std::memcpy(value, in.v.row(j) + column, width * sizeof(float));
    std::memset(value + width, 0, (s.width_padded - width) * sizeof(float));
  }
}

struct ScaleOp {
  float factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    return hn::Mul(v, hn::Set(d, factor));
  }
};

// Queries [first, first + 6); behind the last one, that one is computed again and not stored.
void attend_block(const AttentionInput& in, size_t first, size_t column, const HeadScratch& s, View<float, 2> out) {
  const size_t n = in.q.extent(0), m = in.k.extent(0), width = in.head_width;
  const size_t rows = std::min(kQueryBlock, n - first);
  const float* a[kQueryBlock];
  for (size_t r = 0; r < kQueryBlock; ++r) a[r] = in.q.row(std::min(first + r, n - 1)) + column;
  for (size_t j = 0; j < s.keys_padded; j += s.tile) {
    multiply_tile(a, s.keys + j * width, s.tile, width, s.scores + j, s.keys_padded);
  }
  float sums[kQueryBlock];
  for (size_t r = 0; r < rows; ++r) {
    float* row = s.scores + r * s.keys_padded;
    sums[r] = exponentials(row, in.scale, row, m);
  }
  for (size_t r = 0; r < kQueryBlock; ++r) a[r] = s.scores + std::min(r, rows - 1) * s.keys_padded;
  for (size_t c = 0; c < s.width_padded; c += s.tile) {
    multiply_tile(a, s.values + c, s.width_padded, m, s.result + c, s.width_padded);
  }
  for (size_t r = 0; r < rows; ++r) {
    transform(s.result + r * s.width_padded, out.row(first + r) + column, width, ScaleOp{1.0f / sums[r]});
  }
}

void attend_heads(const AttentionInput& in, size_t head_begin, size_t head_end, float* memory, View<float, 2> out) {
  const HeadScratch s = lay_out(in.k.extent(0), in.head_width, memory);
  for (size_t head = head_begin; head < head_end; ++head) {
    const size_t column = head * in.head_width;
    pack_head(in, column, s);
    for (size_t first = 0; first < in.q.extent(0); first += kQueryBlock) attend_block(in, first, column, s, out);
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(attend_heads);

size_t attention_scratch_size(size_t keys, size_t head_width) {
  const size_t keys_padded = round_up(keys, kMaxTile), width_padded = round_up(head_width, kMaxTile);
  return keys_padded * head_width + keys * width_padded + kQueryBlock * (keys_padded + width_padded);
}

void attention(const AttentionInput& input, size_t head_begin, size_t head_end, std::span<float> scratch,
               View<float, 2> out) {
  const size_t n = input.q.extent(0), m = input.k.extent(0);
  SYRINX_CHECK(scratch.size() >= attention_scratch_size(m, input.head_width), "scratch {} for {} keys", scratch.size(),
               m);
  SYRINX_DCHECK(m > 0 && input.v.extent(0) == m && out.extent(0) == n, "N {} M {} values {} out {}", n, m,
                input.v.extent(0), out.extent(0));
  SYRINX_DCHECK(
      head_end * input.head_width <= std::min({input.q.extent(1), input.k.extent(1), input.v.extent(1), out.extent(1)}),
      "head {} of width {}", head_end, input.head_width);
  HWY_DYNAMIC_DISPATCH(attend_heads)(input, head_begin, head_end, scratch.data(), out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
