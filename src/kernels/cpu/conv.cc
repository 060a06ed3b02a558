#include "kernels/conv.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv.cc"
#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)  // sums live in arrays of vectors
#endif
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/conv_rows-inl.h"
#include "kernels/cpu/gemm_block-inl.h"

#ifndef SYRINX_KERNELS_CPU_CONV_ONCE_
#define SYRINX_KERNELS_CPU_CONV_ONCE_
namespace syrinx::kernels {
namespace {

// Bytes of one row of the tile in the scratch.
size_t tile_row_bytes(const PackedMatrix& matrix) {
  return matrix.type == PanelType::kF32 ? f32_tile_stride(matrix.depth()) * sizeof(float) : matrix.depth();
}

}  // namespace
}  // namespace syrinx::kernels
#endif  // SYRINX_KERNELS_CPU_CONV_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// Where a tile's parts lie in the scratch; the same arithmetic plans the size (conv_scratch_bytes).
struct Scratch {
  void* rows;          // activated input, [input rows][depth] u8 or f32
  uint8_t* rest;       // fine matrices: the second byte of each activation, as rows; else null
  float* activated;    // one row, while its scale is being found
  float* row_scale;    // [tile rows]
  int32_t* row_term;   // [tile rows]
  int32_t* rest_term;  // the same for the second bytes
  int32_t* row_sum;    // [input rows]
  alignas(64) int32_t sums[kMaxBlockRows * kPanelColumns];
  alignas(64) int32_t rest_sums[kMaxBlockRows * kPanelColumns];
};

// Calls f<storage, activation>() for the run-time pair.
template <class F>
void with_input(const ConvInput& in, const F& f) {
  const auto with_storage = [&](auto storage) {
    switch (in.activation) {
      case Activation::kNone: return f(storage, std::integral_constant<Activation, Activation::kNone>());
      case Activation::kLeakyRelu: return f(storage, std::integral_constant<Activation, Activation::kLeakyRelu>());
      case Activation::kSnake: return f(storage, std::integral_constant<Activation, Activation::kSnake>());
      case Activation::kElu: return f(storage, std::integral_constant<Activation, Activation::kElu>());
    }
  };
  if (in.storage == Storage::kF32) {
    with_storage(std::integral_constant<Storage, Storage::kF32>());
  } else {
    with_storage(std::integral_constant<Storage, Storage::kF16>());
  }
}

struct Tile {
  size_t first_row = 0;  // output rows
  size_t rows = 0;
  ptrdiff_t first_input = 0;
  size_t input_rows = 0;
};

Tile tile_at(const PackedMatrix& matrix, const ConvGeometry& g, size_t index) {
  Tile t;
  const size_t tile_rows = tile_rows_for(g.rows);
  t.first_row = index * tile_rows;
  t.rows = std::min(tile_rows, g.rows - t.first_row);
  t.first_input = static_cast<ptrdiff_t>(t.first_row * g.stride) - g.pad;
  t.input_rows = (t.rows - 1) * g.stride + (matrix.taps - 1) * g.dilation + 1;
  return t;
}

// Sums of the bytes that each output row sees, times the weights' zero point.
void row_terms(const PackedMatrix& matrix, const ConvGeometry& g, const Tile& tile, const uint8_t* bytes, Scratch& s,
               int32_t* terms) {
  if (matrix.zero == 0) {
    std::fill_n(terms, tile.rows, 0);
    return;
  }
  const size_t depth = matrix.depth();
  for (size_t i = 0; i < tile.input_rows; ++i, bytes += depth) {
    int32_t sum = 0;
    for (size_t k = 0; k < depth; ++k) sum += bytes[k];
    s.row_sum[i] = sum;
  }
  for (size_t m = 0; m < tile.rows; ++m) {
    int32_t sum = 0;
    for (size_t t = 0; t < matrix.taps; ++t) sum += s.row_sum[m * g.stride + t * g.dilation];
    terms[m] = sum * matrix.zero;
  }
}

// Fills the scratch with the tile's activated input; returns the zero point of its bytes.
int32_t load_int8(const PackedMatrix& matrix, const ConvGeometry& g, const ConvInput& in, const Tile& tile,
                  Scratch& s) {
  int32_t zero = 128;
  auto* const bytes = static_cast<uint8_t*>(s.rows);
  with_input(in, [&](auto storage, auto activation) {
    if (in.range == nullptr || s.rest != nullptr) {
      SYRINX_CHECK(matrix.taps == 1 && g.stride == 1 && g.pad == 0, "several taps need the range of the input");
      load_rows_u8<storage(), activation()>(in, tile.first_row, tile.rows, matrix.depth(), s.row_scale, s.activated,
                                            bytes, s.rest);
      return;
    }
    const ptrdiff_t last = tile.first_input + static_cast<ptrdiff_t>(tile.input_rows) - 1;
    const auto inside = [&](ptrdiff_t row) {
      return static_cast<size_t>(std::clamp<ptrdiff_t>(row, 0, static_cast<ptrdiff_t>(in.rows) - 1));
    };
    const Quantiser q = tile_quantiser<activation()>(in, inside(tile.first_input), inside(last), matrix.depth());
    zero = q.zero;
    std::fill_n(s.row_scale, tile.rows, q.scale);
    load_tile_u8<storage(), activation()>(in, tile.first_input, tile.input_rows, matrix.depth(), q, bytes);
  });
  row_terms(matrix, g, tile, bytes, s, s.row_term);
  if (s.rest != nullptr) row_terms(matrix, g, tile, s.rest, s, s.rest_term);
  return zero;
}

using Int8Block = void (*)(const uint8_t*, const BlockGeometry&, const int8_t*, size_t, int32_t*);

Int8Block choose_int8_block() {
#if HWY_TARGET == HWY_AVX3
  if (use_avx512_vnni()) return &int8_block_vnni;
#elif HWY_TARGET == HWY_NEON
  if (use_neon_dotprod()) return &int8_block_dotprod;
#endif
  return &int8_block;
}

void store(const PanelScale& scale, bool is_int8, const void* sums, const Tile& tile, size_t row, size_t rows,
           size_t column, const ConvOutput& out, PanelStats* stats) {
  const bool f32 = out.storage == Storage::kF32;
  if (is_int8) {
    if (f32) return store_block<Storage::kF32, true>(scale, sums, tile.first_row, row, rows, column, out, stats);
    return store_block<Storage::kF16, true>(scale, sums, tile.first_row, row, rows, column, out, stats);
  }
  if (f32) return store_block<Storage::kF32, false>(scale, sums, tile.first_row, row, rows, column, out, stats);
  return store_block<Storage::kF16, false>(scale, sums, tile.first_row, row, rows, column, out, stats);
}

Scratch plan(const PackedMatrix& matrix, const ConvGeometry& g, std::span<std::byte> scratch) {
  SYRINX_CHECK(scratch.size() >= conv_scratch_bytes(matrix, g), "scratch of {} bytes, needs {}", scratch.size(),
               conv_scratch_bytes(matrix, g));
  const size_t tile_rows = tile_rows_for(g.rows);
  const size_t input_rows = (tile_rows - 1) * g.stride + (matrix.taps - 1) * g.dilation + 1;
  std::byte* at = scratch.data();
  const auto take = [&at](size_t bytes) {
    std::byte* const begin = at;
    at += round_up(bytes + 64, 64);
    return begin;
  };
  Scratch s;
  s.row_scale = reinterpret_cast<float*>(take(tile_rows * sizeof(float)));
  s.row_term = reinterpret_cast<int32_t*>(take(tile_rows * sizeof(int32_t)));
  s.rest_term = reinterpret_cast<int32_t*>(take(tile_rows * sizeof(int32_t)));
  s.row_sum = reinterpret_cast<int32_t*>(take(input_rows * sizeof(int32_t)));
  s.activated = reinterpret_cast<float*>(take(matrix.depth() * sizeof(float)));
  s.rows = take(input_rows * tile_row_bytes(matrix));
  s.rest = matrix.fine ? reinterpret_cast<uint8_t*>(take(input_rows * matrix.depth())) : nullptr;
  return s;
}

void conv_tile(const PackedMatrix& matrix, const ConvGeometry& g, const ConvInput& in, const ConvOutput& out,
               size_t index, Range panels, Scratch& s) {
  const bool is_int8 = matrix.type == PanelType::kInt8;
  const size_t depth = matrix.depth(), stride = is_int8 ? depth : f32_tile_stride(depth);
  const Tile tile = tile_at(matrix, g, index);
  int32_t zero = 0;
  if (is_int8) {
    zero = load_int8(matrix, g, in, tile, s);
  } else {
    with_input(in, [&](auto storage, auto activation) {
      load_tile_f32<storage(), activation()>(in, tile.first_input, tile.input_rows, depth, stride,
                                             static_cast<float*>(s.rows));
    });
  }
  const BlockGeometry block{
      .row_stride = g.stride * stride, .taps = matrix.taps, .tap_stride = g.dilation * stride, .depth = depth};
  const Int8Block int8 = choose_int8_block();
  alignas(64) int32_t column_term[kPanelColumns];
  PanelStats stats;
  for (size_t p = panels.begin; p < panels.end; ++p) {
    const size_t column = p * kPanelColumns;
    const std::byte* const panel = static_cast<const std::byte*>(matrix.panels) + p * matrix.panel_bytes();
    PanelScale scale{.bias = matrix.bias + column};
    if (is_int8) {
      for (size_t n = 0; n < kPanelColumns; ++n) column_term[n] = zero * matrix.column_sum[column + n];
      scale.scale = matrix.scale + column;
      scale.column_term = column_term;
      scale.row_scale = s.row_scale;
      scale.row_term = s.row_term;
    }
    for (size_t row = 0; row < tile.rows; row += kBlockRows) {
      const size_t rows = std::min(kBlockRows, tile.rows - row);
      if (is_int8) {
        int8(static_cast<const uint8_t*>(s.rows) + row * block.row_stride, block,
             reinterpret_cast<const int8_t*>(panel), rows, s.sums);
        if (s.rest != nullptr) {
          int8(s.rest + row * block.row_stride, block, reinterpret_cast<const int8_t*>(panel), rows, s.rest_sums);
          scale.rest_sums = s.rest_sums;
          scale.rest_term = s.rest_term;
        }
      } else {
        f32_block(static_cast<const float*>(s.rows) + row * block.row_stride, block,
                  reinterpret_cast<const float*>(panel), rows, reinterpret_cast<float*>(s.sums));
      }
      store(scale, is_int8, s.sums, tile, row, rows, column, out, out.stats == nullptr ? nullptr : &stats);
    }
    if (out.stats != nullptr) finish_stats(stats, tile.rows, *out.stats, index, column);
  }
}

void conv_target(const PackedMatrix& matrix, const ConvGeometry& g, const ConvInput& in, const ConvOutput& out,
                 Range tiles, Range panels, std::span<std::byte> scratch) {
  Scratch s = plan(matrix, g, scratch);
  for (size_t t = tiles.begin; t < tiles.end; ++t) conv_tile(matrix, g, in, out, t, panels, s);
}

template <Storage kStorage>
void stats_of_tile(const void* data, size_t stride, size_t columns, const TileStats& to, size_t tile) {
  const F32 d;
  const size_t lanes = hn::Lanes(d);
  const size_t first = tile * to.tile_rows(), rows = std::min(to.tile_rows(), to.rows - first);
  PanelStats s;
  for (size_t column = 0; column < columns; column += kPanelColumns) {
    for (size_t n = 0; n < kPanelColumns; n += lanes) {
      const VF pivot = load_stored<kStorage>(data, first * stride + column + n);
      VF sum = hn::Zero(d), squares = sum, least = pivot, greatest = pivot;
      for (size_t r = 0; r < rows; ++r) {
        const VF v = load_stored<kStorage>(data, (first + r) * stride + column + n);
        const VF deviation = hn::Sub(v, pivot);
        sum = hn::Add(sum, deviation);
        squares = hn::MulAdd(deviation, deviation, squares);
        least = hn::Min(least, v);
        greatest = hn::Max(greatest, v);
      }
      hn::StoreU(pivot, d, s.pivot + n);
      hn::StoreU(sum, d, s.sum + n);
      hn::StoreU(squares, d, s.squares + n);
      hn::StoreU(least, d, s.least + n);
      hn::StoreU(greatest, d, s.greatest + n);
    }
    finish_stats(s, rows, to, tile, column);
  }
}

void column_stats_target(const void* data, Storage storage, size_t stride, size_t columns, const TileStats& stats,
                         Range tiles) {
  for (size_t t = tiles.begin; t < tiles.end; ++t) {
    if (storage == Storage::kF32) {
      stats_of_tile<Storage::kF32>(data, stride, columns, stats, t);
    } else {
      stats_of_tile<Storage::kF16>(data, stride, columns, stats, t);
    }
  }
}

void read_row_target(const void* stored, Storage storage, size_t count, float* values) {
  const F32 d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(storage == Storage::kF32 ? load_stored<Storage::kF32>(stored, i) : load_stored<Storage::kF16>(stored, i),
               d, values + i);
  }
}

void write_row_target(const float* values, Storage storage, size_t count, void* stored) {
  const F32 d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const VF v = hn::LoadU(d, values + i);
    if (storage == Storage::kF32) {
      store_stored<Storage::kF32>(v, stored, i);
    } else {
      store_stored<Storage::kF16>(v, stored, i);
    }
  }
}

void gemv_f32(const PackedMatrix& matrix, const float* x, const float* addend, float* y, Range panels) {
  const F32 d;
  const size_t lanes = hn::Lanes(d), depth = matrix.depth();
  const float* w = static_cast<const float*>(matrix.panels) + panels.begin * depth * kPanelColumns;
  for (size_t p = panels.begin; p < panels.end; ++p, w += depth * kPanelColumns) {
    for (size_t n = 0; n < kPanelColumns; n += 2 * lanes) {
      // Two vectors of columns and two depths in flight: four independent sums hide the latency of the fused product.
      VF a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0;
      const float* v = w + n;
      for (size_t k = 0; k < depth; k += 2, v += 2 * kPanelColumns) {
        const VF x0 = hn::Set(d, x[k]), x1 = hn::Set(d, x[k + 1]);
        a0 = hn::MulAdd(x0, hn::LoadU(d, v), a0);
        a1 = hn::MulAdd(x0, hn::LoadU(d, v + lanes), a1);
        b0 = hn::MulAdd(x1, hn::LoadU(d, v + kPanelColumns), b0);
        b1 = hn::MulAdd(x1, hn::LoadU(d, v + kPanelColumns + lanes), b1);
      }
      const size_t column = p * kPanelColumns + n;
      VF s0 = hn::Add(hn::Add(a0, b0), hn::LoadU(d, matrix.bias + column));
      VF s1 = hn::Add(hn::Add(a1, b1), hn::LoadU(d, matrix.bias + column + lanes));
      if (addend != nullptr) {
        s0 = hn::Add(s0, hn::LoadU(d, addend + column));
        s1 = hn::Add(s1, hn::LoadU(d, addend + column + lanes));
      }
      hn::StoreU(s0, d, y + column);
      hn::StoreU(s1, d, y + column + lanes);
    }
  }
}

void gemv_int8(const PackedMatrix& matrix, const float* x, const float* addend, float* y, Range panels,
               std::span<std::byte> scratch) {
  const F32 d;
  const I32 di;
  const size_t lanes = hn::Lanes(d), depth = matrix.depth(), count = panels.end - panels.begin;
  auto* const sums = reinterpret_cast<int32_t*>(scratch.data());
  auto* const activated = reinterpret_cast<float*>(sums + matrix.padded_columns());
  auto* const bytes = reinterpret_cast<uint8_t*>(activated + round_up(depth, 32));
  float row_scale = 1.0f;
  const ConvInput in{.data = x, .rows = 1, .stride = 0};
  load_rows_u8<Storage::kF32, Activation::kNone>(in, 0, 1, depth, &row_scale, activated, bytes);
  const auto* const w = static_cast<const int8_t*>(matrix.panels) + panels.begin * depth * kPanelColumns;
#if HWY_TARGET == HWY_AVX3
  if (use_avx512_vnni()) {
    int8_gemv_vnni(bytes, depth, w, count, sums);
  } else
#endif
  {
    const Int8Block block = choose_int8_block();
    const BlockGeometry g{.row_stride = depth, .taps = 1, .tap_stride = 0, .depth = depth};
    for (size_t p = 0; p < count; ++p) block(bytes, g, w + p * depth * kPanelColumns, 1, sums + p * kPanelColumns);
  }
  int32_t row_term = 0;
  if (matrix.zero != 0) {
    for (size_t k = 0; k < depth; ++k) row_term += bytes[k];
    row_term *= matrix.zero;
  }
  for (size_t i = 0; i < count * kPanelColumns; i += lanes) {
    const size_t n = panels.begin * kPanelColumns + i;
    const auto zero_term = hn::Mul(hn::Set(di, 128), hn::LoadU(di, matrix.column_sum + n));
    const auto exact = hn::Sub(hn::Sub(hn::LoadU(di, sums + i), hn::Set(di, row_term)), zero_term);
    const VF scaled = hn::Mul(hn::ConvertTo(d, exact), hn::Set(d, row_scale));
    VF v = hn::MulAdd(scaled, hn::LoadU(d, matrix.scale + n), hn::LoadU(d, matrix.bias + n));
    if (addend != nullptr) v = hn::Add(v, hn::LoadU(d, addend + n));
    hn::StoreU(v, d, y + n);
  }
}

void gemv_target(const PackedMatrix& matrix, const float* x, const float* addend, float* y, Range panels,
                 std::span<std::byte> scratch) {
  if (matrix.type == PanelType::kF32) return gemv_f32(matrix, x, addend, y, panels);
  gemv_int8(matrix, x, addend, y, panels, scratch);
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(conv_target);
HWY_EXPORT(column_stats_target);
HWY_EXPORT(gemv_target);
HWY_EXPORT(read_row_target);
HWY_EXPORT(write_row_target);

size_t tile_rows_for(size_t rows) {
  // A multiple of four tiles of nearly equal size, cut at whole blocks of 14 rows, so that 1, 2 or 4 threads share
  // them evenly; a single tile when there is little to do.
  constexpr size_t kUnit = 14, kShares = 4;
  if (rows <= kMaxTileRows) return std::max<size_t>(round_up(rows, kUnit), kUnit);
  const size_t tiles = kShares * ((rows + kShares * kMaxTileRows - 1) / (kShares * kMaxTileRows));
  return std::min(kMaxTileRows, round_up((rows + tiles - 1) / tiles, kUnit));
}

size_t conv_scratch_bytes(const PackedMatrix& matrix, const ConvGeometry& g) {
  const size_t tile_rows = tile_rows_for(g.rows);
  const size_t input_rows = (tile_rows - 1) * g.stride + (matrix.taps - 1) * g.dilation + 1;
  return 3 * (tile_rows * 4 + 128) + (input_rows * 4 + 128) + (matrix.depth() * 4 + 128) +
         (input_rows * tile_row_bytes(matrix) + 128) * (matrix.fine ? 2 : 1);
}

void conv(const PackedMatrix& matrix, const ConvGeometry& g, const ConvInput& in, const ConvOutput& out, Range tiles,
          Range panels, std::span<std::byte> scratch) {
  SYRINX_DCHECK(in.stride % 32 == 0 && in.stride >= matrix.depth(), "input stride {}", in.stride);
  SYRINX_DCHECK(panels.end <= matrix.panel_count() && tiles.end <= tile_count_for(g.rows));
  if (g.rows == 0) return;
  HWY_DYNAMIC_DISPATCH(conv_target)(matrix, g, in, out, tiles, panels, scratch);
}

void column_stats(const void* data, Storage storage, size_t stride, size_t rows, size_t columns, const TileStats& stats,
                  Range tiles) {
  SYRINX_DCHECK(rows == stats.rows && columns <= stats.columns);
  if (rows == 0) return;
  HWY_DYNAMIC_DISPATCH(column_stats_target)(data, storage, stride, columns, stats, tiles);
}

void read_row(const void* stored, Storage storage, size_t count, float* values) {
  HWY_DYNAMIC_DISPATCH(read_row_target)(stored, storage, count, values);
}
void write_row(const float* values, Storage storage, size_t count, void* stored) {
  HWY_DYNAMIC_DISPATCH(write_row_target)(values, storage, count, stored);
}

size_t gemv_scratch_bytes(const PackedMatrix& matrix) {
  return matrix.padded_columns() * 4 + round_up(matrix.depth(), 32) * 5 + 64;
}

void gemv(const PackedMatrix& matrix, const float* x, const float* addend, float* y, Range panels,
          std::span<std::byte> scratch) {
  SYRINX_DCHECK(matrix.taps == 1 && panels.end <= matrix.panel_count());
  SYRINX_CHECK(matrix.type == PanelType::kF32 || scratch.size() >= gemv_scratch_bytes(matrix));
  HWY_DYNAMIC_DISPATCH(gemv_target)(matrix, x, addend, y, panels, scratch);
}

}  // namespace syrinx::kernels
#endif
