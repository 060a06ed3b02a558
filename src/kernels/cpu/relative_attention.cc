// Blocks of four queries that follow each other: the keys of a tile are read once for all four, the positions once for
// each, shifted by one column from query to query.  A tile is two vectors of keys; what it computes behind the last key
// is written over or not looked at.
#include "kernels/relative_attention.h"

#include <algorithm>
#include <array>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/relative_attention.cc"
#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)  // sums live in arrays of vectors
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/tail-inl.h"

#ifndef SYRINX_KERNELS_CPU_RELATIVE_ATTENTION_ONCE_
#define SYRINX_KERNELS_CPU_RELATIVE_ATTENTION_ONCE_
namespace syrinx::kernels {
namespace {

constexpr size_t kQueryBlock = 4;

// Keys [begin, end) that lie in columns and rows from `column` on.
struct KeyRun {
  size_t begin, end, column;
};

// The keys [begin, end) as one run, or two where they go round the ring.
std::array<KeyRun, 2> runs_of(const RelativeAttention& in, size_t begin, size_t end) {
  if (in.ring == 0) return {{{begin, end, begin}, {end, end, 0}}};
  const size_t column = (in.ring_first + begin) % in.ring;
  const size_t first = std::min(end - begin, in.ring - column);
  return {{{begin, begin + first, column}, {begin + first, end, 0}}};
}

}  // namespace
}  // namespace syrinx::kernels
#endif  // SYRINX_KERNELS_CPU_RELATIVE_ATTENTION_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// Working set of a block of kRows queries.
template <size_t kRows>
struct Block {
  const float* q[kRows];
  ptrdiff_t column[kRows];  // of the position for key 0; may be before the table, for keys that the query does not see
  float* scores;            // [kRows, stride], column 0 is key `begin`
  size_t stride;
  size_t begin, end;  // the keys that any of them sees
};

// The scores of two vectors of keys: key j lies in column `column` of `keys`, which has one row a number of the head.
template <size_t kRows>
HWY_INLINE void score_tile(const RelativeAttention& in, const Block<kRows>& block, size_t head, size_t j,
                           size_t column) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d), stride = in.keys.stride(0), turn = in.positions.stride(0);
  const float* key = in.keys.row(head * in.head_size) + column;
  const float* const constants = in.constants.row(head);
  const float* position[kRows];
  hn::VFromD<decltype(d)> first[kRows], second[kRows];
  for (size_t r = 0; r < kRows; ++r) {
    const ptrdiff_t at = block.column[r] + static_cast<ptrdiff_t>(j);
    position[r] = in.positions.row(head * in.head_size) + at;
    first[r] = hn::LoadU(d, constants + at);
    second[r] = hn::LoadU(d, constants + at + lanes);
  }
  for (size_t t = 0; t < in.head_size; ++t, key += stride) {
    const auto k0 = hn::LoadU(d, key), k1 = hn::LoadU(d, key + lanes);
    for (size_t r = 0; r < kRows; ++r) {
      const auto x = hn::Set(d, block.q[r][t]);
      first[r] = hn::MulAdd(x, hn::Add(k0, hn::LoadU(d, position[r])), first[r]);
      second[r] = hn::MulAdd(x, hn::Add(k1, hn::LoadU(d, position[r] + lanes)), second[r]);
      position[r] += turn;
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    float* const to = block.scores + r * block.stride + (j - block.begin);
    hn::StoreU(first[r], d, to);
    hn::StoreU(second[r], d, to + lanes);
  }
}

// out[r][column, column + 2 lanes) = sum over the keys of score * value / sums[r].
template <size_t kRows>
HWY_INLINE void weigh_tile(const RelativeAttention& in, const Block<kRows>& block, size_t column, size_t width,
                           const float* sums, float* const* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  hn::VFromD<decltype(d)> first[kRows], second[kRows];
  for (size_t r = 0; r < kRows; ++r) first[r] = second[r] = hn::Zero(d);
  const bool whole = width >= 2 * lanes;
  const size_t low = std::min(width, lanes), high = std::min(width - low, lanes);
  for (const KeyRun& run : runs_of(in, block.begin, block.end)) {
    for (size_t j = run.begin; j < run.end; ++j) {
      const float* const value = in.values.data() + (run.column + j - run.begin) * in.values.stride(0) + column;
      const auto v0 = whole ? hn::LoadU(d, value) : load_n(d, value, low);
      const auto v1 = whole ? hn::LoadU(d, value + lanes) : load_n(d, value + low, high);
      for (size_t r = 0; r < kRows; ++r) {
        const auto x = hn::Set(d, block.scores[r * block.stride + (j - block.begin)]);
        first[r] = hn::MulAdd(x, v0, first[r]);
        second[r] = hn::MulAdd(x, v1, second[r]);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    const auto inverse = hn::Set(d, 1.0f / sums[r]);
    store_n(hn::Mul(first[r], inverse), d, out[r] + column, low);
    if (high > 0) store_n(hn::Mul(second[r], inverse), d, out[r] + column + low, high);
  }
}

template <size_t kRows>
void attend_block(const RelativeAttention& in, size_t query, size_t head, float* scratch, View<float, 2> out) {
  const hn::ScalableTag<float> d;
  const size_t tile = 2 * hn::Lanes(d), width = in.head_size, column = head * width;
  Block<kRows> block;
  block.begin = in.sees[query].begin;
  block.end = in.sees[query].end;
  for (size_t r = 0; r < kRows; ++r) {
    block.q[r] = in.q.row(query + r) + column;
    block.column[r] = in.first_offset - in.first_query - static_cast<ptrdiff_t>(query + r);
    block.begin = std::min<size_t>(block.begin, in.sees[query + r].begin);
    block.end = std::max<size_t>(block.end, in.sees[query + r].end);
  }
  block.scores = scratch;
  block.stride = block.end - block.begin + tile;
  for (const KeyRun& run : runs_of(in, block.begin, block.end))
    for (size_t j = run.begin; j < run.end; j += tile) score_tile(in, block, head, j, run.column + j - run.begin);
  float sums[kRows];
  float* rows[kRows];
  for (size_t r = 0; r < kRows; ++r) {
    float* const row = block.scores + r * block.stride;
    const size_t begin = in.sees[query + r].begin - block.begin, end = in.sees[query + r].end - block.begin;
    sums[r] = exponentials(row + begin, in.scale, row + begin, end - begin);
    std::fill(row, row + begin, 0.0f);
    std::fill(row + end, row + (block.end - block.begin), 0.0f);
    rows[r] = out.row(query + r);
  }
  for (size_t c = 0; c < width; c += tile) weigh_tile(in, block, column + c, std::min(tile, width - c), sums, rows);
}

void attend_relative(const RelativeAttention& in, size_t head_begin, size_t head_end, float* scratch,
                     View<float, 2> out) {
  const size_t queries = in.q.extent(0);
  for (size_t head = head_begin; head < head_end; ++head) {
    size_t query = 0;
    for (; query + kQueryBlock <= queries; query += kQueryBlock)
      attend_block<kQueryBlock>(in, query, head, scratch, out);
    if (query + 2 <= queries) {
      attend_block<2>(in, query, head, scratch, out);
      query += 2;
    }
    if (query < queries) attend_block<1>(in, query, head, scratch, out);
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(attend_relative);

size_t relative_attention_scratch_size(size_t keys) {
  return kQueryBlock * (keys + kQueryBlock + kRelativeAttentionSlack);
}

void relative_attention(const RelativeAttention& input, size_t head_begin, size_t head_end, std::span<float> scratch,
                        View<float, 2> out) {
  const size_t queries = input.q.extent(0);
  SYRINX_CHECK(input.sees.size() == queries && out.extent(0) == queries, "{} queries see {} ranges", queries,
               input.sees.size());
  for (size_t first = 0; first < queries; first += kQueryBlock) {
    const size_t last = std::min(first + kQueryBlock, queries) - 1;
    const size_t begin = std::min(input.sees[first].begin, input.sees[last].begin);
    const size_t end = std::max(input.sees[first].end, input.sees[last].end);
    SYRINX_CHECK(begin < end && kQueryBlock * (end - begin + kRelativeAttentionSlack) <= scratch.size(),
                 "keys {} to {}, scratch {}", begin, end, scratch.size());
  }
  HWY_DYNAMIC_DISPATCH(attend_relative)(input, head_begin, head_end, scratch.data(), out);
}

void transpose_rows(View<const float, 2> rows, size_t first, bool ring, View<float, 2> to) {
  constexpr size_t kBlock = 8;
  const size_t count = rows.extent(0), columns = rows.extent(1), stride = to.stride(0), size = to.extent(1);
  for (size_t c = 0; c < columns; c += kBlock) {
    const size_t here = std::min(kBlock, columns - c);
    for (size_t t = 0; t < count; ++t) {
      const size_t column = ring ? (first + t) % size : first + t;
      const float* const from = rows.row(t) + c;
      float* const at = to.row(c) + column;
      for (size_t i = 0; i < here; ++i) at[i * stride] = from[i];
    }
  }
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
