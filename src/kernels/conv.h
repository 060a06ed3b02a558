// Convolutions over time-major rows as an implicit GEMM: one kernel for linear layers (one tap), dilated and strided
// convolutions, and transposed convolutions (two taps, stride x channels columns; pack.h).
//
//   out[m, n] = (bias[n] + sum_t sum_k activate(in[m * stride + t * dilation - pad, k] * scale[k] + shift[k]) w[t, k,
//   n]
//                + residual[m, n] + addend[m, n]) * factor          rows outside the input are zero after activation
//
// The work is cut into tiles of output rows and panels of 32 columns; a caller gives each thread a range of either.
// A tile's input is normalised, activated and quantised once into scratch that stays in the second-level cache; each
// finished block of sums is scaled, added and stored while it is in the first, and its statistics are taken there.
//
// int8: activations u8, weights s8 in 7 bits, sums exact in int32.  With `range` each tile has one scale, from the
// exact range of its input rows (activations are monotone, so the ends of each channel's range suffice); without it
// (one tap only) each row has its own symmetric scale.
//
// Views: rows start at multiples of `stride` elements; input strides are multiples of 32 and padding columns hold
// zeros; an output row has room for whole panels.  in may not alias out; residual and addend may be out itself. Nothing
// is allocated; any number of threads may run disjoint ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_team.h"
#include "tensor/packed_matrix.h"

namespace syrinx::kernels {

enum class Storage : uint8_t { kF32, kF16 };
constexpr size_t storage_bytes(Storage storage) { return storage == Storage::kF32 ? 4 : 2; }

// kSnake: v + sin(alpha v)^2 / alpha (Kokoro, section 5.2).  kElu: v, or e^v - 1 where v < 0.  All are monotone in v.
enum class Activation : uint8_t { kNone, kLeakyRelu, kSnake, kElu };

// Tiles of output rows: a function of the row count alone, so that results do not depend on the number of threads.
inline constexpr size_t kMaxTileRows = 252;
size_t tile_rows_for(size_t rows);
inline size_t tile_count_for(size_t rows) {
  return rows == 0 ? 0 : (rows + tile_rows_for(rows) - 1) / tile_rows_for(rows);
}

// Per tile and column: mean, sum of squared deviations from it, least, greatest.  [tiles][4][columns], columns a
// multiple of 32.  Written tile by tile, so that threads never meet and sums have a fixed order.
struct TileStats {
  float* values = nullptr;
  size_t columns = 0;
  size_t rows = 0;  // of the plane described

  size_t tile_rows() const { return tile_rows_for(rows); }
  size_t tiles() const { return tile_count_for(rows); }
  float* mean(size_t tile) const { return values + tile * 4 * columns; }
  float* squares(size_t tile) const { return mean(tile) + columns; }
  float* least(size_t tile) const { return mean(tile) + 2 * columns; }
  float* greatest(size_t tile) const { return mean(tile) + 3 * columns; }
};

struct ConvInput {
  const void* data = nullptr;  // row 0
  Storage storage = Storage::kF32;
  size_t rows = 0;
  size_t stride = 0;             // elements between rows
  const float* scale = nullptr;  // with shift: per channel, padded to 32; both or neither
  const float* shift = nullptr;
  Activation activation = Activation::kNone;
  float slope = 0.0f;                    // kLeakyRelu
  const float* alpha_over_pi = nullptr;  // kSnake, per channel, padded to 32
  const float* inverse_alpha = nullptr;
  const TileStats* range = nullptr;  // of the raw input; needed for int8 with several taps
};

struct ConvOutput {
  void* data = nullptr;  // row 0, column 0
  Storage storage = Storage::kF32;
  size_t stride = 0;
  const void* residual = nullptr;  // same storage as data
  size_t residual_stride = 0;
  const void* addend = nullptr;  // same storage as data
  size_t addend_stride = 0;
  float factor = 1.0f;
  TileStats* stats = nullptr;  // of what is stored; columns >= padded columns
};

struct ConvGeometry {
  size_t rows = 0;  // output rows
  size_t dilation = 1;
  size_t stride = 1;
  ptrdiff_t pad = 0;  // input rows before the first tap of output row 0
};

// Bytes that one thread's scratch needs for this convolution.
size_t conv_scratch_bytes(const PackedMatrix& matrix, const ConvGeometry& geometry);

// Computes output tiles [tiles.begin, tiles.end) and panels [panels.begin, panels.end).
void conv(const PackedMatrix& matrix, const ConvGeometry& geometry, const ConvInput& in, const ConvOutput& out,
          Range tiles, Range panels, std::span<std::byte> scratch);

// Takes the statistics of columns [0, columns) of a plane that no convolution wrote, tiles [tiles.begin, tiles.end).
void column_stats(const void* data, Storage storage, size_t stride, size_t rows, size_t columns, const TileStats& stats,
                  Range tiles);

// One row between its stored form and f32; `count` is a multiple of 32.
void read_row(const void* stored, Storage storage, size_t count, float* values);
void write_row(const float* values, Storage storage, size_t count, void* stored);

// y[0, columns) = x[0, channels) times a one-tap matrix, bias added; with `addend`, that is added too.  x is padded
// with zeros to a multiple of 32; y and addend have room for whole panels.  int8 quantises x symmetrically with one
// scale. Panels [begin, end).
void gemv(const PackedMatrix& matrix, const float* x, const float* addend, float* y, Range panels,
          std::span<std::byte> scratch);
size_t gemv_scratch_bytes(const PackedMatrix& matrix);

}  // namespace syrinx::kernels
