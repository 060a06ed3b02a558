// The cell of an LSTM after its matrix products, for one step:
//   i, f, o = sigmoid, g = tanh of the gates; c = f * c + i * g; h = o * tanh(c).
#pragma once

#include <span>

namespace syrinx::kernels {

// gates [4 H] in PyTorch's order i, f, g, o, with both products and both biases already summed; cell [H] is updated in
// place; hidden [H] is written.  hidden must not overlap gates.  Error: a few ulp of each term (see the test's bound).
void lstm_cell(std::span<const float> gates, std::span<float> cell, std::span<float> hidden);

}  // namespace syrinx::kernels
