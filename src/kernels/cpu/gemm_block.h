// Internal: the register-blocked inner products behind conv.h and gemv.h.  One call computes `rows` x 32 sums:
//   c[r][n] = sum over taps t, depth k of  a[r * row_stride + t * tap_stride + k] * panel(t * depth + k, n)
// c is a scratch of [rows][32].  rows <= block_rows() of the same target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syrinx::kernels {

inline constexpr size_t kMaxBlockRows = 14;

// Numbers between two f32 rows of a tile, `depth` numbers each.  A block's rows are read side by side: at a multiple of
// 1 KiB they would share a few sets of the first-level cache and drive each other out.
constexpr size_t f32_tile_stride(size_t depth) { return depth % 256 == 0 ? depth + 16 : depth; }

struct BlockGeometry {
  size_t row_stride = 0;  // elements of `a`
  size_t taps = 1;
  size_t tap_stride = 0;  // elements of `a`
  size_t depth = 0;       // a multiple of 4
};

#if defined(__x86_64__)
// Needs AVX-512 F, BW, VL, DQ and VNNI: callers ask dispatch.h first.
void int8_block_vnni(const uint8_t* a, const BlockGeometry& geometry, const int8_t* panel, size_t rows, int32_t* c);
// y[32 * panels] = one row of u8 times int8 panels, several panels at a time.
void int8_gemv_vnni(const uint8_t* a, size_t depth, const int8_t* panels, size_t panel_count, int32_t* y);
#endif
#if defined(__aarch64__)
// Needs the dot-product extension.
void int8_block_dotprod(const uint8_t* a, const BlockGeometry& geometry, const int8_t* panel, size_t rows, int32_t* c);
#endif

}  // namespace syrinx::kernels

#if defined(__clang__)
#define SYRINX_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SYRINX_UNROLL _Pragma("GCC unroll 32")
#endif
