// Convolutions and linear layers over rows that are ready to be multiplied: activated and rounded where they were made,
// each frame behind the last rows of the frame before (its history) in one array.  Nothing is copied or activated
// again.
//
//   y[m, n]         = (bias[n] + sum_t sum_k x[m * row_step + t * tap_step + k] w[t, k, n]) * scale[n] + residual[m, n]
//   output[m, n]    = y[m, n]                  what a residual connection needs later
//   activated[m, n] = activation(y[m, n])      what the next layer reads
//
// A transposed convolution is one of two taps whose columns are `stride` output rows side by side (pack.h).  Weights
// are f32, bf16 or int16.  With rows of f32, bf16 is widened in registers and multiplied in f32, so both give the same
// sums. With rows of bf16, which only weights of bf16 take, sums are f32 as well: of two depths at a time where the
// processor has an instruction for that (bf16_rows_are_faster), else one by one.
//
// Weights of int16 take rows of int16, each with a scale of its own, so that quiet rows lose no more than loud ones.
// Sums of kInt16Run depths of a tap are exact; they are scaled and added up in f32.
//
// Each sum has one order (taps, then channels), so a result depends neither on how many rows go through in a call nor
// on how rows and panels are shared out.  Nothing is allocated; any number of threads may run disjoint ranges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_team.h"
#include "tensor/packed_matrix.h"
#include "tensor/view.h"

namespace syrinx::kernels {

enum class RowActivation { kNone, kElu, kGeluTanh, kGeluErf, kSilu, kSnakeBeta };

// Numbers of kSnakeBeta for each column, [padded columns]: y + inverse_beta sin^2(alpha y), the product alpha y rounded
// (Lee et al. 2022, "BigVGAN", with a magnitude of its own).  Exact to 4e-7 of inverse_beta for |alpha y| <= 1e4,
// bounded beyond.
struct SnakeBeta {
  const float* alpha = nullptr;
  const float* inverse_beta = nullptr;
};

// How rows that a layer reads are stored.  bf16 is the upper half of an f32, rounded to nearest, halves to even; int16
// is made by quantise_rows() and is no type of activated rows.
enum class RowType : uint8_t { kF32, kBf16, kInt16 };
constexpr size_t row_bytes(RowType type, size_t numbers) { return numbers * (type == RowType::kF32 ? 4 : 2); }

// Whether this processor (within its limit, dispatch.h) is known to multiply bf16 by bf16 faster than f32: BF16 of
// AVX-512 on AMD's.  Intel's multiplies such rows at half the rate of f32 (Emerald Rapids: 89 Gop/s beside 185), and
// NEON's too, but nobody has timed that yet.
bool bf16_rows_are_faster();

// Whether this processor (within its limit) multiplies int16 as fast as f32 or faster: x86 with AVX2 or better, at
// twice the rate with VNNI.  It loses less than bf16.  Others have their code and are not known to gain.
bool int16_rows_are_fast();

// Steps and strides count numbers, not bytes.
struct RowConv {
  const void* input = nullptr;  // the first tap of output row 0
  RowType input_type = RowType::kF32;
  size_t rows = 0;                   // of the output
  size_t row_step = 0;               // between the first taps of two output rows
  size_t tap_step = 0;               // between two taps; kInt16: a multiple of row_step
  const float* row_scale = nullptr;  // kInt16: [rows + (taps - 1) * tap_step / row_step], of the input's rows
  float* output = nullptr;           // may be null, or `residual`
  void* activated = nullptr;         // may be null
  RowType activated_type = RowType::kF32;
  size_t stride = 0;  // between rows of both, room for whole panels
  const float* residual = nullptr;
  size_t residual_stride = 0;
  const float* scale = nullptr;  // [padded columns]
  RowActivation activation = RowActivation::kNone;
  SnakeBeta snake{};
};

// Rows of f32 [N, C] as whole numbers up to kInt16Activation with a scale each, [N]; what lies behind C up to `stride`
// becomes 0.  A row with a number that is not finite gets a scale that is none, and so do the sums that read it.
void quantise_rows(View<const float, 2> rows, int16_t* to, size_t stride, float* scale);

// Output rows `rows`, columns of panels `panels`.  A tap is read up to the matrix's depth (channels rounded up to 4):
// what lies there must be finite.  The input may not overlap what is written.
void row_conv(const PackedMatrix& matrix, const RowConv& conv, Range rows, Range panels);

// Rows times panels shared out among a team: by rows where each member gets several blocks of them, so that it finds in
// its own cache what it wrote; else by panels, so that each weight is read by one member, which begins at a multiple of
// `grain`.
struct RowConvShare {
  Range rows, panels;
};
RowConvShare share_row_conv(const PackedMatrix& matrix, size_t rows, int member, int members, size_t grain = 1);

// One output channel: y[m] = bias + sum_j x[m * row_step + j] w[j], j in [0, length), output rows `rows`.
void row_dot(const float* weights, size_t length, float bias, const float* input, size_t row_step, float* output,
             Range rows);

}  // namespace syrinx::kernels
