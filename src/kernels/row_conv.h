// Convolutions and linear layers over rows that are ready to be multiplied: f32, activated where they were made, each
// frame behind the last rows of the frame before (its history) in one array.  Nothing is copied or activated again.
//
//   y[m, n]         = (bias[n] + sum_t sum_k x[m * row_step + t * tap_step + k] w[t, k, n]) * scale[n] + residual[m, n]
//   output[m, n]    = y[m, n]                  what a residual connection needs later
//   activated[m, n] = activation(y[m, n])      what the next layer reads
//
// A transposed convolution is one of two taps whose columns are `stride` output rows side by side (pack.h).  Weights
// are f32 or bf16; bf16 is widened in registers and multiplied in f32, so both give the same sums.
//
// Each sum has one order (taps, then channels), so a result depends neither on how many rows go through in a call nor
// on how rows and panels are shared out.  Nothing is allocated; any number of threads may run disjoint ranges.
#pragma once

#include <cstddef>

#include "base/thread_team.h"
#include "tensor/packed_matrix.h"

namespace syrinx::kernels {

enum class RowActivation { kNone, kElu, kGeluTanh, kGeluErf };

struct RowConv {
  const float* input = nullptr;  // the first tap of output row 0
  size_t rows = 0;               // of the output
  size_t row_step = 0;           // floats between the first taps of two output rows
  size_t tap_step = 0;           // floats between two taps
  float* output = nullptr;       // may be null, or `residual`
  float* activated = nullptr;    // may be null
  size_t stride = 0;             // floats between rows of both, room for whole panels
  const float* residual = nullptr;
  size_t residual_stride = 0;
  const float* scale = nullptr;  // [padded columns]
  RowActivation activation = RowActivation::kNone;
};

// Output rows `rows`, columns of panels `panels`.  A tap is read up to the matrix's depth (channels rounded up to 4):
// what lies there must be finite.  The input may not overlap what is written.
void row_conv(const PackedMatrix& matrix, const RowConv& conv, Range rows, Range panels);

// Rows times panels shared out among a team: by rows where each member gets several blocks of them, so that it finds in
// its own cache what it wrote; else by panels, so that each weight is read by one member.
struct RowConvShare {
  Range rows, panels;
};
RowConvShare share_row_conv(const PackedMatrix& matrix, size_t rows, int member, int members);

// One output channel: y[m] = bias + sum_j x[m * row_step + j] w[j], j in [0, length), output rows `rows`.
void row_dot(const float* weights, size_t length, float bias, const float* input, size_t row_step, float* output,
             Range rows);

}  // namespace syrinx::kernels
