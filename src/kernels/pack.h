// Packing weights into panels (tensor/packed_matrix.h).  Load time only; allocates.
#pragma once

#include <functional>
#include <span>

#include "tensor/buffer.h"
#include "tensor/packed_matrix.h"

namespace syrinx::kernels {

// A packed matrix that owns its bytes.
struct OwnedMatrix {
  PackedMatrix view;
  Buffer<std::byte> panels;
  Buffer<float> bias, scale;
  Buffer<int32_t> column_sum;
};

struct MatrixShape {
  size_t columns = 0;   // output channels
  size_t channels = 0;  // input channels of a tap
  size_t taps = 1;
};

// A matrix of zeros with room for its panels; the bias is copied, an empty one is zero.
OwnedMatrix make_matrix(const MatrixShape& shape, PanelType type, std::span<const float> bias);

// Moves the panels of all into one run of memory, on huge pages where the system has them, in this order: tens of
// megabytes that are read in turn would else miss the processor's table of small pages all the time.  Those of which
// a matrix is a mere view stay where they are.  The run must outlive the matrices.
Buffer<std::byte> gather_panels(std::span<OwnedMatrix* const> matrices);

// weight(n, k, t): column n, input channel k, tap t.  An empty bias is zero.
using WeightAt = std::function<float(size_t n, size_t k, size_t t)>;
OwnedMatrix pack_f32(const MatrixShape& shape, const WeightAt& weight, std::span<const float> bias);

// bf16 where every weight is one, as published checkpoints have them; f32 where any is not.  The bias stays f32.
OwnedMatrix pack_exact(const MatrixShape& shape, const WeightAt& weight, std::span<const float> bias);

// Quantises to 7 bits, symmetric, one scale a column.
OwnedMatrix pack_int8(const MatrixShape& shape, const WeightAt& weight, std::span<const float> bias);

// Takes weights that are already quantised: real = scale[n] * (q - zero), q and zero in [-64, 64]; `scale` has one
// value or one a column.
using QuantisedAt = std::function<int8_t(size_t n, size_t k, size_t t)>;
OwnedMatrix pack_quantised(const MatrixShape& shape, const QuantisedAt& weight, std::span<const float> scale, int zero,
                           std::span<const float> bias);

}  // namespace syrinx::kernels
