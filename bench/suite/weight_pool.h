// Packed weights that come from memory, for the cases of `syrinx bench kernels` that multiply by them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bench/suite/kernel_cases.h"
#include "tensor/buffer.h"
#include "tensor/packed_matrix.h"

namespace syrinx::bench {

struct ProductShape {
  size_t channels, columns;
};

const char* panel_type_name(PanelType type);
LimitKind arithmetic_limit(PanelType type);

// 128 MB of bytes that are small positive weights, and scales, in every type; all cases read the same ones.
struct WeightPool {
  WeightPool();
  PackedMatrix matrix(PanelType type, const ProductShape& shape, size_t offset) const;
  Buffer<std::byte> weights;
  Buffer<float> ones, zeros;
  Buffer<int32_t> sums;
};

// A product of some rows with matrices of the pool.
struct PoolProduct {
  std::function<void(ThreadTeam&)> run;
  double bytes = 0, weights = 0;  // of one run
};
// With matrices of all shapes in turn, until the pool has been read once.
PoolProduct pool_product(const std::shared_ptr<const WeightPool>& pool, PanelType type,
                         std::span<const ProductShape> shapes, size_t rows);
// With one matrix a run, the next one of the pool each time.
PoolProduct next_product(const std::shared_ptr<const WeightPool>& pool, PanelType type, const ProductShape& shape,
                         size_t rows);
// With the first matrix of the pool alone.
PoolProduct cached_product(const std::shared_ptr<const WeightPool>& pool, PanelType type, const ProductShape& shape,
                           size_t rows);

}  // namespace syrinx::bench
