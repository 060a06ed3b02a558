// The batched narrow product: rows of many streams against weights that come from memory, one case a precision, number
// of rows and shape of the decoders that servers run.
#include <memory>

#include "bench/suite/kernel_cases.h"
#include "bench/suite/weight_pool.h"

namespace syrinx::bench {
namespace {

struct NamedShape {
  const char* model;
  ProductShape shape;
};
constexpr NamedShape kShapes[] = {
    {"Pocket", {1024, 3072}}, {"Pocket", {1024, 1024}}, {"Pocket", {1024, 4096}},  {"Pocket", {4096, 1024}},
    {"Qwen", {2048, 1024}},   {"Qwen", {1024, 6144}},   {"Qwen", {3072, 1024}},    {"Qwen", {1024, 2048}},
    {"STT-1B", {2048, 6144}}, {"STT-1B", {2048, 2048}}, {"STT-1B", {2048, 11264}}, {"STT-1B", {5632, 2048}},
    {"STT-1B", {2048, 8000}},
};
constexpr size_t kRows[] = {1, 2, 4, 8, 16, 32};

}  // namespace

std::vector<KernelCase> row_kernel_cases() {
  const auto pool = std::make_shared<const WeightPool>();
  std::vector<KernelCase> cases;
  for (const PanelType type : {PanelType::kInt8Symmetric, PanelType::kInt4, PanelType::kBf16}) {
    for (const size_t rows : kRows) {
      const std::string name = fmt::format("{} rows, {}", panel_type_name(type), rows);
      for (const NamedShape& named : kShapes) {
        PoolProduct product = next_product(pool, type, named.shape, rows);
        cases.push_back({.name = name,
                         .shape = fmt::format("{} x {}, {}", named.shape.channels, named.shape.columns, named.model),
                         .limit = arithmetic_limit(type),
                         .work = 2.0 * static_cast<double>(rows) * product.weights,
                         .run = std::move(product.run),
                         .read_bytes = product.bytes,
                         .group = name});
      }
    }
  }
  return cases;
}

}  // namespace syrinx::bench
