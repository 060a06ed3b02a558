// A causal convolution over time-major rows, some rows at a time: it reads its input behind the last rows of the pass
// before, which the caller keeps.  `stride` input rows make one row of the matrix, which holds `up` output rows side by
// side: a transposed convolution of kernel 2 s is one of two taps with up = s.
//
// Weights are immutable; any number of threads may run disjoint parts.
#pragma once

#include <span>
#include <vector>

#include "kernels/pack.h"
#include "kernels/row_conv.h"
#include "nn/crew.h"

namespace syrinx::nn {

struct CausalConv {
  kernels::OwnedMatrix matrix{};  // f32, bf16 or int16 (kernels/row_conv.h)
  size_t stride = 1, dilation = 1, up = 1;
  bool elu = false;        // of the input
  size_t history = 0;      // input rows before the first
  size_t input_width = 0;  // numbers between input rows: the channels, padded to 32; samples stand side by side
  size_t width = 0;        // numbers between output rows
  kernels::RowType input_type = kernels::RowType::kF32;  // kF32 with int16, which run() makes of them
  // To samples: one output channel, [kernel, input_width] and its bias in place of the matrix.
  std::vector<float> dot{};
  float dot_bias = 0.0f;

  size_t input_bytes(size_t rows) const { return kernels::row_bytes(input_type, rows * input_width); }
  size_t kept_bytes() const { return input_bytes(history); }  // of the history

  // Where results go: `output` as they are, `ready` as the next layer reads them; either may be null.
  struct Target {
    float* output = nullptr;
    std::byte* ready = nullptr;
    kernels::RowType type = kernels::RowType::kF32;
    kernels::RowActivation activation = kernels::RowActivation::kNone;
    kernels::SnakeBeta snake{};       // of its activation, [up * width]
    const float* residual = nullptr;  // rows as those of `output`, which are added; may be `output`
    const float* scale = nullptr;     // [up * width], by which all is multiplied before that
    std::byte* ready_at(size_t number) const {
      return ready + (ready == nullptr ? 0 : kernels::row_bytes(type, number));
    }
  };
  // One member's share of what `rows` rows from `in` on make, a multiple of the stride.  The history lies before `in`,
  // and the rows are activated already; up to the matrix's depth behind them may be read.
  void run(const Part& part, const std::byte* in, size_t rows, const Target& to) const;

  // The same for rows of several streams, for all of which each weight is read once; their results do not depend on
  // each other.  Not to samples.
  struct Piece {
    const std::byte* in = nullptr;
    size_t rows = 0;
    Target to;
  };
  void run(const Part& part, std::span<const Piece> pieces, std::span<std::byte> scratch = {}) const;
  // Bytes that a member needs for so many input rows in all; 0 but for int16, which takes a stride of 1 alone.
  size_t scratch_bytes(size_t rows, size_t pieces) const;

 private:
  kernels::RowConv work_of(const Piece& piece) const;
  size_t quantised_stride() const { return input_width + kPanelColumns; }  // no power of two
};

}  // namespace syrinx::nn
