// Blocks of 14 queries.  The products with the positions come first, into rows that each query then reads from its own
// place on; the products with the keys are added panel by panel.  Scores and weights of a block, and the head's panels,
// stay in the second-level cache.
#include "kernels/relative_head.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "kernels/cpu/packed_heads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/relative_head.cc"
#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)  // sums live in arrays of vectors
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/packed_heads-inl.h"
#include "kernels/cpu/softmax-inl.h"

#ifndef SYRINX_KERNELS_CPU_RELATIVE_HEAD_ONCE_
#define SYRINX_KERNELS_CPU_RELATIVE_HEAD_ONCE_
namespace syrinx::kernels {
namespace {

// The parts of the scratch, each at a multiple of a line.
struct HeadScratch {
  HeadScratch(DType type, size_t rows, size_t width)
      : shape(rows, width),
        // Both ends of the keys seen are rounded to panels, and so are those of the positions between.
        turned_stride(shape.padded_keys + 3 * kPanelColumns + kLine / sizeof(float)),
        // A row of queries, while it is being rounded, has room there too.
        score_stride(std::max(shape.padded_keys, shape.padded_width) + kLine / sizeof(float)),
        queries(round_up((shape.key_numbers() + shape.value_numbers()) * dtype_size(type), kLine)),
        turned(queries + kNarrowRows * shape.query_stride()),
        scores(turned + kNarrowRows * turned_stride * sizeof(float)),
        weights(scores + kNarrowRows * score_stride * sizeof(float)),
        bytes(weights + (type == DType::kF32 ? 0 : kNarrowRows * shape.weight_stride())) {}
  HeadShape shape;
  size_t turned_stride, score_stride;                          // numbers
  size_t panels = 0, queries, turned, scores, weights, bytes;  // where each begins
};

}  // namespace
}  // namespace syrinx::kernels
#endif  // SYRINX_KERNELS_CPU_RELATIVE_HEAD_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// Products of f32 rows with f32 panels, in the form of those of bf16.
inline void f32_rows(const NarrowBlock& x, const float* panel, size_t rows, float* c) {
  const BlockGeometry g{.row_stride = x.stride / sizeof(float), .depth = x.depth};
  f32_block(reinterpret_cast<const float*>(x.rows), g, panel, rows, c);
}

struct PowerOfTwoOnly {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return PowerOfTwo(d, x);
  }
};

// The exponentials of one row in bf16's accuracy, in place; returns their sum.
inline float weigh_seen_roughly(float* row, float scale, size_t count) {
  return powers(PowerOfTwoOnly(), row, scale * 1.44269504f, row, count);
}

// One head with the arithmetic of T: float, or uint16_t for bf16.
template <class T>
class RelativeHeadRun {
 public:
  RelativeHeadRun(const RelativeHead& in, const HeadScratch& parts, std::byte* memory)
      : in_(in),
        parts_(parts),
        shape_(parts.shape),
        products_(choose_pair_products()),
        panels_(reinterpret_cast<T*>(memory)),
        queries_(memory + parts.queries),
        turned_(reinterpret_cast<float*>(memory + parts.turned)),
        scores_(reinterpret_cast<float*>(memory + parts.scores)),
        weights_(memory + parts.weights) {
    pack_nothing(in.k.extent(0), shape_, panels_);
    pack_keys(in.k, 0, shape_, panels_);
    pack_values(in.v, 0, shape_, panels_ + shape_.key_numbers());
  }

  void attend(size_t first, size_t rows, View<float, 2> out) {
    begin_ = in_.sees[first].begin / kPanelColumns * kPanelColumns;
    end_ = round_up(in_.sees[first + rows - 1].end, kPanelColumns);
    load_queries(first, rows);
    const ptrdiff_t turned = multiply_positions(first, rows);
    multiply_keys(first, rows, turned);
    float sums[kNarrowRows];
    for (size_t r = 0; r < rows; ++r) sums[r] = weigh(first + r, r);
    multiply_values(first, rows, sums, out);
  }

 private:
  void multiply(const NarrowBlock& x, const T* panel, size_t rows, float* c) const {
    if constexpr (std::is_same_v<T, float>) {
      f32_rows(x, panel, rows, c);
    } else {
      products_.rows(x, panel, rows, c);
    }
  }

  NarrowBlock queries() const { return {.rows = queries_, .stride = shape_.query_stride(), .depth = shape_.depth}; }

  void load_queries(size_t first, size_t rows) {
    const size_t width = in_.q.extent(1);
    for (size_t r = 0; r < rows; ++r) {
      std::fill_n(std::copy_n(in_.q.row(first + r), width, scores_), shape_.padded_width - width, 0.0f);
      std::byte* const to = queries_ + r * shape_.query_stride();
      if constexpr (std::is_same_v<T, float>) {
        std::memcpy(to, scores_, shape_.padded_width * sizeof(float));
      } else {
        store_row(products_, scores_, shape_.padded_width, to);
      }
    }
  }

  // The products with all positions between the block and the keys from begin_ to end_, row by row, with the constants;
  // returns the position of column 0.  Columns of positions that there are not are left as they were: nobody sees them.
  ptrdiff_t multiply_positions(size_t first, size_t rows) {
    constexpr auto kPanel = static_cast<ptrdiff_t>(kPanelColumns);
    const F32 d;
    const auto* const positions = reinterpret_cast<const T*>(in_.positions.data());
    const auto offset = static_cast<ptrdiff_t>(in_.first_offset), query = static_cast<ptrdiff_t>(first);
    const ptrdiff_t lowest = offset - (query + static_cast<ptrdiff_t>(rows) - 1) + static_cast<ptrdiff_t>(begin_);
    const ptrdiff_t end = offset - query + static_cast<ptrdiff_t>(end_);
    const ptrdiff_t low = lowest - ((lowest % kPanel) + kPanel) % kPanel;
    const auto known = static_cast<ptrdiff_t>(in_.offsets);
    alignas(64) float c[kNarrowRows * kPanelColumns];
    for (ptrdiff_t m = std::max<ptrdiff_t>(low, 0); m < std::min(end, known); m += kPanel) {
      multiply(queries(), positions + static_cast<size_t>(m) * shape_.depth, rows, c);
      for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d)) {
        const VF constant = hn::LoadU(d, in_.constants + m + n);
        float* to = turned_ + (m - low) + n;
        for (size_t r = 0; r < rows; ++r, to += parts_.turned_stride)
          hn::StoreU(hn::Add(hn::LoadU(d, c + r * kPanelColumns + n), constant), d, to);
      }
    }
    return low;
  }

  // scores_[r][j - begin_], before the scale.
  void multiply_keys(size_t first, size_t rows, ptrdiff_t turned) {
    const F32 d;
    const auto offset = static_cast<ptrdiff_t>(in_.first_offset) - turned;
    alignas(64) float c[kNarrowRows * kPanelColumns];
    for (size_t j = begin_; j < end_; j += kPanelColumns) {
      multiply(queries(), panels_ + j * shape_.depth, rows, c);
      for (size_t r = 0; r < rows; ++r) {
        const ptrdiff_t place = offset - static_cast<ptrdiff_t>(first + r) + static_cast<ptrdiff_t>(j);
        const float* const position = turned_ + r * parts_.turned_stride + place;
        float* const to = scores_ + r * parts_.score_stride + (j - begin_);
        for (size_t n = 0; n < kPanelColumns; n += hn::Lanes(d))
          hn::StoreU(hn::Add(hn::LoadU(d, c + r * kPanelColumns + n), hn::LoadU(d, position + n)), d, to + n);
      }
    }
  }

  // The weights of row r, not yet divided; zeros where the query sees no key.  Returns their sum.
  float weigh(size_t query, size_t r) {
    float* const row = scores_ + r * parts_.score_stride;
    const size_t begin = in_.sees[query].begin - begin_, end = in_.sees[query].end - begin_;
    float sum = 0;
    if constexpr (std::is_same_v<T, float>) {
      sum = exponentials(row + begin, in_.scale, row + begin, end - begin);
    } else {
      sum = weigh_seen_roughly(row + begin, in_.scale, end - begin);
    }
    std::fill(row, row + begin, 0.0f);
    std::fill(row + end, row + (end_ - begin_), 0.0f);
    if constexpr (!std::is_same_v<T, float>)
      store_row(products_, row, end_ - begin_, weights_ + r * shape_.weight_stride());
    return sum;
  }

  void multiply_values(size_t first, size_t rows, const float* sums, View<float, 2> out) const {
    const size_t width = in_.v.extent(1);
    NarrowBlock weights{.rows = weights_, .stride = shape_.weight_stride(), .depth = end_ - begin_};
    if constexpr (std::is_same_v<T, float>) {
      weights.rows = reinterpret_cast<const std::byte*>(scores_);
      weights.stride = parts_.score_stride * sizeof(float);
    }
    alignas(64) float c[kNarrowRows * kPanelColumns];
    const T* panel = panels_ + shape_.key_numbers() + begin_ * kPanelColumns;
    for (size_t column = 0; column < width; column += kPanelColumns, panel += shape_.padded_keys * kPanelColumns) {
      multiply(weights, panel, rows, c);
      store_divided(c, sums, rows, column, first, out);
    }
  }

  const RelativeHead& in_;
  const HeadScratch& parts_;
  const HeadShape& shape_;
  const PairProducts products_;
  T* const panels_;  // of keys, then of values
  std::byte* const queries_;
  float *const turned_, *const scores_;
  std::byte* const weights_;
  size_t begin_ = 0, end_ = 0;  // the keys that the block sees, whole panels
};

template <class T>
void attend_sequence(const RelativeHead& in, const HeadScratch& parts, std::byte* memory, View<float, 2> out) {
  RelativeHeadRun<T> run(in, parts, memory);
  const size_t count = in.q.extent(0), step = even_step(count, kNarrowRows);
  for (size_t first = 0; first < count; first += step) run.attend(first, std::min(step, count - first), out);
}

void relative_head_target(const RelativeHead& in, std::byte* memory, View<float, 2> out) {
  const HeadScratch parts(in.type, in.q.extent(0), in.q.extent(1));
  if (in.type == DType::kF32) return attend_sequence<float>(in, parts, memory, out);
  attend_sequence<uint16_t>(in, parts, memory, out);
}

void pack_positions_target(DType type, View<const float, 2> positions, std::byte* to) {
  const HeadShape shape(positions.extent(0), positions.extent(1));
  if (type == DType::kF32) {
    std::memset(to, 0, shape.key_numbers() * sizeof(float));
    return pack_keys(positions, 0, shape, reinterpret_cast<float*>(to));
  }
  std::memset(to, 0, shape.key_numbers() * sizeof(uint16_t));
  pack_keys(positions, 0, shape, reinterpret_cast<uint16_t*>(to));
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(pack_positions_target);
HWY_EXPORT(relative_head_target);

size_t packed_positions_bytes(DType type, size_t offsets, size_t head_width) {
  return round_up(HeadShape(offsets, head_width).key_numbers() * dtype_size(type), kLine);
}

void pack_positions(DType type, View<const float, 2> positions, std::span<std::byte> to) {
  SYRINX_CHECK(to.size() >= packed_positions_bytes(type, positions.extent(0), positions.extent(1)),
               "{} positions into {} bytes", positions.extent(0), to.size());
  HWY_DYNAMIC_DISPATCH(pack_positions_target)(type, positions, to.data());
}

size_t relative_head_scratch_bytes(DType type, size_t rows, size_t head_width) {
  return HeadScratch(type, rows, head_width).bytes;
}

void relative_head(const RelativeHead& input, std::span<std::byte> scratch, View<float, 2> out) {
  const size_t rows = input.q.extent(0), width = input.q.extent(1);
  SYRINX_CHECK((input.type == DType::kF32 || input.type == DType::kBF16) && rows > 0 && input.sees.size() == rows &&
                   input.k.extent(0) == rows && input.v.extent(0) == rows && out.extent(0) == rows &&
                   input.positions.size() >= packed_positions_bytes(input.type, input.offsets, width) &&
                   scratch.size() >= relative_head_scratch_bytes(input.type, rows, width),
               "{} rows of {}, {} ranges, {} offsets, {} bytes of scratch", rows, width, input.sees.size(),
               input.offsets, scratch.size());
  // Positions that are not there would be read from what the scratch held before.
  for (size_t i = 0; i < rows; ++i)
    SYRINX_CHECK(input.sees[i].begin < input.sees[i].end && input.sees[i].end <= rows &&
                     input.first_offset + input.sees[i].begin >= i &&
                     input.first_offset + input.sees[i].end <= input.offsets + i,
                 "query {} sees keys {} to {}; {} offsets from {}", i, input.sees[i].begin, input.sees[i].end,
                 input.offsets, input.first_offset);
  HWY_DYNAMIC_DISPATCH(relative_head_target)(input, scratch.data(), out);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
