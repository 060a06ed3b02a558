// Depthwise convolutions on time-major rows, each channel with taps of its own.
//
//   over rows:            out[t, c]    = activation(bias[c] + sum_j weight[j, c] x[t + j - pad, c])
//   3 x 3 over an image:  out[t, f, c] = activation(bias[c] + sum_jk weight[j, k, c] x[2 t + j - pad, 2 f + k - pad_f,
//   c])
//
// The second halves time and columns; with one input channel it is the first convolution of a subsampling stack.  What
// lies outside of the input is zero.  Sums have one order, so a row does not depend on how rows are shared out.
// Rows are contiguous, strides are free; out may not overlap x.  Thread-safe, allocates nothing.
#pragma once

#include <cstddef>

#include "tensor/view.h"

namespace syrinx::kernels {

enum class RowsActivation { kNone, kRelu, kSilu };

struct DepthwiseRows {
  const float* weight = nullptr;  // [taps, C]
  const float* bias = nullptr;    // [C] or nullptr
  size_t taps = 0;
  size_t pad = 0;  // rows before x[0]
  RowsActivation activation = RowsActivation::kNone;
};

// Output rows [begin, end) of out [T', C] from x [T, C].
void depthwise_rows(const DepthwiseRows& conv, View<const float, 2> x, size_t begin, size_t end, View<float, 2> out);

struct HalvingConv {
  const float* weight = nullptr;  // [3, 3, C]: rows, then columns
  const float* bias = nullptr;    // [C]
  size_t channels = 0;            // C of the output
  size_t input_channels = 0;      // C, or 1: every output channel reads it
  size_t input_columns = 0, columns = 0;
  size_t pad = 0, pad_columns = 0;  // before the first row, the first column
  bool relu = false;
};

// Output rows [begin, end) of out [T', columns * C] from x [T, input_columns * input_channels].
void halving_conv(const HalvingConv& conv, View<const float, 2> x, size_t begin, size_t end, View<float, 2> out);

}  // namespace syrinx::kernels
