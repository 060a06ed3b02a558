#include "bench/suite/weight_pool.h"

#include "nn/linear.h"

namespace syrinx::bench {
namespace {

constexpr size_t kWidest = 11264;
// Far beyond the last cache of most machines.
constexpr size_t kPoolBytes = size_t{128} << 20;

// Rows of one product, in and out, and the runner of the team that runs it.
struct Rows {
  Rows(size_t rows, size_t widest) {
    x.prepare(rows, widest, kernels::Storage::kF32);
    y.prepare(rows, widest, kernels::Storage::kF32);
    for (size_t n = 0; n < rows; ++n)
      for (size_t k = 0; k < widest; ++k) x.f32(n)[k] = static_cast<float>((n * 31 + k * 7) % 127) / 64.0f - 1.0f;
  }
  void multiply(ThreadTeam& team, const PackedMatrix& matrix) {
    if (runner == nullptr || &runner->team() != &team) runner = std::make_unique<nn::Runner>(team);
    nn::linear(*runner, matrix, {x.f32(), {x.rows(), matrix.channels}, {x.stride(), 1}}, {},
               {y.f32(), {y.rows(), matrix.columns}, {y.stride(), 1}});
  }
  nn::Plane x, y;
  std::unique_ptr<nn::Runner> runner;
};

double bytes_of(const PackedMatrix& matrix) { return static_cast<double>(matrix.panel_count() * matrix.panel_bytes()); }

// Matrices of the shapes in turn, one behind another.
std::vector<PackedMatrix> matrices_of(const WeightPool& pool, PanelType type, std::span<const ProductShape> shapes) {
  std::vector<PackedMatrix> matrices;
  size_t used = 0;
  for (size_t i = 0;; ++i) {
    const PackedMatrix matrix = pool.matrix(type, shapes[i % shapes.size()], used);
    used += matrix.panel_count() * matrix.panel_bytes();
    if (used > kPoolBytes) return matrices;
    matrices.push_back(matrix);
  }
}

}  // namespace

const char* panel_type_name(PanelType type) {
  switch (type) {
    case PanelType::kF32: return "f32";
    case PanelType::kBf16: return "bf16";
    case PanelType::kInt8Symmetric: return "int8";
    default: return "int4";
  }
}

LimitKind arithmetic_limit(PanelType type) {
  return type == PanelType::kBf16 ? LimitKind::kBf16 : type == PanelType::kF32 ? LimitKind::kF32 : LimitKind::kInt8;
}

WeightPool::WeightPool() : weights(kPoolBytes), ones(kWidest), zeros(kWidest), sums(kWidest) {
  prefer_huge_pages(weights.data(), weights.size());
  for (std::byte& b : weights) b = std::byte{0x3C};
  for (float& v : ones) v = 1.0f;
}

PackedMatrix WeightPool::matrix(PanelType type, const ProductShape& shape, size_t offset) const {
  PackedMatrix m;
  m.type = type;
  m.channels = shape.channels;
  m.columns = shape.columns;
  m.panels = weights.data() + offset;
  m.bias = zeros.data();
  m.scale = ones.data();
  m.column_sum = sums.data();
  return m;
}

PoolProduct pool_product(const std::shared_ptr<const WeightPool>& pool, PanelType type,
                         std::span<const ProductShape> shapes, size_t rows) {
  PoolProduct product;
  size_t widest = 0;
  std::vector<PackedMatrix> matrices = matrices_of(*pool, type, shapes);
  for (const PackedMatrix& matrix : matrices) {
    product.bytes += bytes_of(matrix);
    product.weights += static_cast<double>(matrix.channels * matrix.columns);
    widest = std::max({widest, matrix.channels, matrix.columns});
  }
  const auto buffers = std::make_shared<Rows>(rows, widest);
  product.run = [pool, buffers, matrices = std::move(matrices)](ThreadTeam& team) {
    for (const PackedMatrix& matrix : matrices) buffers->multiply(team, matrix);
  };
  return product;
}

PoolProduct next_product(const std::shared_ptr<const WeightPool>& pool, PanelType type, const ProductShape& shape,
                         size_t rows) {
  const auto buffers = std::make_shared<Rows>(rows, std::max(shape.channels, shape.columns));
  std::vector<PackedMatrix> matrices = matrices_of(*pool, type, {&shape, 1});
  const double bytes = bytes_of(matrices.front());
  auto run = [pool, buffers, matrices = std::move(matrices), next = size_t{0}](ThreadTeam& team) mutable {
    buffers->multiply(team, matrices[next]);
    next = (next + 1) % matrices.size();
  };
  return {.run = std::move(run), .bytes = bytes, .weights = static_cast<double>(shape.channels * shape.columns)};
}

PoolProduct cached_product(const std::shared_ptr<const WeightPool>& pool, PanelType type, const ProductShape& shape,
                           size_t rows) {
  const auto buffers = std::make_shared<Rows>(rows, std::max(shape.channels, shape.columns));
  const PackedMatrix matrix = pool->matrix(type, shape, 0);
  auto run = [pool, buffers, matrix](ThreadTeam& team) { buffers->multiply(team, matrix); };
  return {
      .run = std::move(run), .bytes = bytes_of(matrix), .weights = static_cast<double>(shape.channels * shape.columns)};
}

}  // namespace syrinx::bench
