// A bidirectional LSTM of one layer over rows, zero initial state (PyTorch's nn.LSTM, gates i, f, g, o).
#pragma once

#include <array>

#include "nn/runner.h"
#include "tensor/packed_matrix.h"
#include "tensor/view.h"

namespace syrinx::nn {

struct Lstm {
  size_t inputs = 0;
  size_t width = 0;                       // H of one direction, a multiple of 4
  PackedMatrix input;                     // inputs -> 8H: forward gates, backward gates, both biases summed
  std::array<PackedMatrix, 2> recurrent;  // H -> 4H each
};

// x [N, inputs] -> out [T, 2H]: forward, then backward half.  Row t of the sequence is x[rows[t]], or x[t] when `rows`
// is empty; repeated rows cost no product of their own.  gates is scratch of [N, 8H padded to 32].  Each direction is
// one thread's work.  Where the runner's work is cut, so are the steps of the sequence.
void lstm(Runner& runner, const Lstm& weights, View<const float, 2> x, std::span<const int32_t> rows,
          View<float, 2> gates, View<float, 2> out);

}  // namespace syrinx::nn
