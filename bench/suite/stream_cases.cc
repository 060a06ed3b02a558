// The matrix products of a language model as Pocket TTS runs them: one row, or a few streams, against weights that come
// from memory, and a prompt's rows against one matrix.
#include "bench/suite/kernel_cases.h"
#include "bench/suite/weight_pool.h"

namespace syrinx::bench {
namespace {

constexpr ProductShape kLayer[] = {{1024, 3072}, {1024, 1024}, {1024, 4096}, {4096, 1024}};

// All four shapes in turn, until the pool has been read once.
KernelCase stream_case(const std::shared_ptr<const WeightPool>& pool, PanelType type, size_t rows) {
  PoolProduct product = pool_product(pool, type, kLayer, rows);
  return {.name = fmt::format("{} gemv", panel_type_name(type)),
          .shape = fmt::format("{} of 1024 to 4096, from memory", rows == 1 ? "a row" : fmt::format("{} rows", rows)),
          .limit = LimitKind::kRead,
          .work = product.bytes,
          .run = std::move(product.run)};
}

KernelCase prompt_case(const std::shared_ptr<const WeightPool>& pool, PanelType type, const ProductShape& shape,
                       size_t rows) {
  return {.name = fmt::format("{} gemm", panel_type_name(type)),
          .shape = fmt::format("[{}, {}] x {}", rows, shape.channels, shape.columns),
          .limit = arithmetic_limit(type),
          .work = 2.0 * static_cast<double>(rows * shape.channels * shape.columns),
          .run = cached_product(pool, type, shape, rows).run};
}

}  // namespace

std::vector<KernelCase> stream_kernel_cases() {
  const auto pool = std::make_shared<const WeightPool>();
  std::vector<KernelCase> cases;
  for (const PanelType type : {PanelType::kF32, PanelType::kBf16, PanelType::kInt8Symmetric, PanelType::kInt4}) {
    cases.push_back(stream_case(pool, type, 1));
    if (type == PanelType::kF32) continue;
    for (const size_t rows : {4, 16}) cases.push_back(stream_case(pool, type, rows));
    for (const size_t rows : {41, 126}) {
      for (const ProductShape& shape : {kLayer[2], kLayer[3]}) cases.push_back(prompt_case(pool, type, shape, rows));
    }
  }
  return cases;
}

}  // namespace syrinx::bench
