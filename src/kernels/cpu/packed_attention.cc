// Blocks of 14 queries: all their scores, panel by panel; the exponentials, row by row, rounded to bf16 as they are
// made; the product with the values.  Scores and exponentials of a block stay in the second-level cache, as do a head's
// panels.
#include "kernels/packed_attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "kernels/cpu/packed_heads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/packed_attention.cc"
#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)  // sums live in arrays of vectors
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/packed_heads-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// Row r of a block's scores [panels][rows][32] to weights, not yet divided; returns their sum.  `row` is room for one.
float weigh_row(const PairProducts& products, const float* scores, size_t rows, size_t keys, float scale, float* row,
                std::byte* weights) {
  const F32 d;
  const size_t lanes = hn::Lanes(d), panels = (keys + kPanelColumns - 1) / kPanelColumns;
  const size_t step = rows * kPanelColumns;
  VF best = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (size_t p = 0; p < panels; ++p)
    for (size_t n = 0; n < kPanelColumns; n += lanes) best = hn::Max(best, hn::LoadU(d, scores + p * step + n));
  const float factor = scale * 1.44269504f;
  const VF f = hn::Set(d, factor), most = hn::Set(d, hn::GetLane(hn::MaxOfLanes(d, best)) * factor);
  VF sum = hn::Zero(d);
  for (size_t p = 0; p < panels; ++p) {
    for (size_t n = 0; n < kPanelColumns; n += lanes) {
      const VF e = PowerOfTwo(d, hn::Sub(hn::Mul(hn::LoadU(d, scores + p * step + n), f), most));
      sum = hn::Add(sum, e);
      hn::StoreU(e, d, row + p * kPanelColumns + n);
    }
  }
  // Padding in place of keys has weights of 2^-126 or less, and its values are zero.
  store_row(products, row, panels * kPanelColumns, weights);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void attend_block(const PairProducts& products, const PackedAttention& in, const HeadShape& shape, size_t first,
                  size_t rows, std::byte* memory, View<float, 2> out) {
  const size_t width = in.q.extent(1);
  std::byte* const queries = memory;
  std::byte* const weights = queries + kNarrowRows * shape.query_stride();
  auto* const scores = reinterpret_cast<float*>(weights + kNarrowRows * shape.weight_stride());
  auto* const row = scores + shape.score_bytes() / sizeof(float);
  std::fill_n(row, shape.padded_width, 0.0f);
  for (size_t r = 0; r < rows; ++r) {
    std::copy_n(in.q.row(first + r), width, row);
    store_row(products, row, shape.padded_width, queries + r * shape.query_stride());
  }
  const auto* panel = reinterpret_cast<const uint16_t*>(in.head.data());
  const NarrowBlock asked{.rows = queries, .stride = shape.query_stride(), .depth = shape.depth};
  for (size_t p = 0; p < shape.padded_keys / kPanelColumns; ++p, panel += shape.depth * kPanelColumns)
    products.rows(asked, panel, rows, scores + p * rows * kPanelColumns);
  for (size_t r = 0; r < rows; ++r) {
    float* const last = scores + ((shape.padded_keys / kPanelColumns - 1) * rows + r) * kPanelColumns;
    for (size_t n = kPanelColumns - (shape.padded_keys - in.keys); n < kPanelColumns; ++n)
      last[n] = -std::numeric_limits<float>::infinity();
  }
  float sums[kNarrowRows];
  for (size_t r = 0; r < rows; ++r)
    sums[r] = weigh_row(products, scores + r * kPanelColumns, rows, in.keys, in.scale, row,
                        weights + r * shape.weight_stride());
  panel = reinterpret_cast<const uint16_t*>(in.head.data()) + shape.key_numbers();
  const NarrowBlock weighed{.rows = weights, .stride = shape.weight_stride(), .depth = shape.padded_keys};
  alignas(64) float result[kNarrowRows * kPanelColumns];
  for (size_t c = 0; c < width; c += kPanelColumns, panel += shape.padded_keys * kPanelColumns) {
    products.rows(weighed, panel, rows, result);
    store_divided(result, sums, rows, c, first, out);
  }
}

void attend_queries(const PackedAttention& in, Range queries, std::byte* memory, View<float, 2> out) {
  const PairProducts products = choose_pair_products();
  const HeadShape shape(in.keys, in.q.extent(1));
  const size_t step = even_step(queries.end - queries.begin, kNarrowRows);
  for (size_t first = queries.begin; first < queries.end; first += step)
    attend_block(products, in, shape, first, std::min(step, queries.end - first), memory, out);
}

void pack_head_target(View<const float, 2> k, View<const float, 2> v, size_t at, size_t keys, uint16_t* to) {
  const HeadShape shape(keys, k.extent(1));
  if (at + k.extent(0) == keys) pack_nothing(keys, shape, to);
  pack_keys(k, at, shape, to);
  pack_values(v, at, shape, to + shape.key_numbers());
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(pack_head_target);
HWY_EXPORT(attend_queries);

size_t packed_head_bytes(size_t keys, size_t head_width) {
  const HeadShape shape(keys, head_width);
  return (shape.key_numbers() + shape.value_numbers()) * sizeof(uint16_t);
}

void pack_head(View<const float, 2> k, View<const float, 2> v, size_t first, size_t keys, std::span<std::byte> to) {
  SYRINX_CHECK(first % 2 == 0 && first + k.extent(0) <= keys && v.extent(0) == k.extent(0) &&
                   v.extent(1) == k.extent(1) && to.size() >= packed_head_bytes(keys, k.extent(1)),
               "keys {} to {} of {}, {} values into {} bytes", first, first + k.extent(0), keys, v.extent(0),
               to.size());
  HWY_DYNAMIC_DISPATCH(pack_head_target)(k, v, first, keys, reinterpret_cast<uint16_t*>(to.data()));
}

size_t packed_attention_scratch_bytes(size_t keys, size_t head_width) {
  const HeadShape shape(keys, head_width);
  const size_t row = std::max(shape.padded_keys, shape.padded_width) * sizeof(float);
  return kNarrowRows * (shape.query_stride() + shape.weight_stride()) + shape.score_bytes() + row;
}

void packed_attention(const PackedAttention& input, Range queries, std::span<std::byte> scratch, View<float, 2> out) {
  const size_t width = input.q.extent(1);
  SYRINX_CHECK(input.keys > 0 && input.head.size() >= packed_head_bytes(input.keys, width) &&
                   scratch.size() >= packed_attention_scratch_bytes(input.keys, width) &&
                   queries.end <= input.q.extent(0) && queries.end <= out.extent(0),
               "queries {} to {} over {} keys, {} bytes of scratch", queries.begin, queries.end, input.keys,
               scratch.size());
  HWY_DYNAMIC_DISPATCH(attend_queries)(input, queries, scratch.data(), out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
