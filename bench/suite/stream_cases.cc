// The matrix products of a language model as Pocket TTS runs them: one row, or a few streams, against weights that come
// from memory, and a prompt's rows against one matrix.
#include <memory>

#include "bench/suite/kernel_cases.h"
#include "nn/linear.h"

namespace syrinx::bench {
namespace {

struct Shape {
  size_t channels, columns;
};
constexpr Shape kLayer[] = {{1024, 3072}, {1024, 1024}, {1024, 4096}, {4096, 1024}};
constexpr size_t kWidest = 4096;
// Far beyond the last cache of most machines.
constexpr size_t kPoolBytes = size_t{128} << 20;

const char* type_name(PanelType type) {
  switch (type) {
    case PanelType::kF32: return "f32";
    case PanelType::kBf16: return "bf16";
    case PanelType::kInt8Symmetric: return "int8";
    default: return "int4";
  }
}

LimitKind arithmetic(PanelType type) {
  return type == PanelType::kBf16 ? LimitKind::kBf16 : type == PanelType::kF32 ? LimitKind::kF32 : LimitKind::kInt8;
}

// Bytes that are small positive weights, and scales, in every type; all cases read the same ones.
struct Pool {
  Pool() : weights(kPoolBytes), ones(kWidest), zeros(kWidest), sums(kWidest) {
    prefer_huge_pages(weights.data(), weights.size());
    for (std::byte& b : weights) b = std::byte{0x3C};
    for (float& v : ones) v = 1.0f;
  }
  PackedMatrix matrix(PanelType type, const Shape& shape, size_t offset) const {
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
  Buffer<std::byte> weights;
  Buffer<float> ones, zeros;
  Buffer<int32_t> sums;
};

// Rows of a width, in and out, and the runner of the team that runs them.
struct Rows {
  explicit Rows(size_t rows) {
    x.prepare(rows, kWidest, kernels::Storage::kF32);
    y.prepare(rows, kWidest, kernels::Storage::kF32);
    for (size_t n = 0; n < rows; ++n)
      for (size_t k = 0; k < kWidest; ++k) x.f32(n)[k] = static_cast<float>((n * 31 + k * 7) % 127) / 64.0f - 1.0f;
  }
  void multiply(ThreadTeam& team, const PackedMatrix& matrix) {
    if (runner == nullptr || &runner->team() != &team) runner = std::make_unique<nn::Runner>(team);
    nn::linear(*runner, matrix, {x.f32(), {x.rows(), matrix.channels}, {x.stride(), 1}}, {},
               {y.f32(), {y.rows(), matrix.columns}, {y.stride(), 1}});
  }
  nn::Plane x, y;
  std::unique_ptr<nn::Runner> runner;
};

// All four shapes in turn, until the pool has been read once.
KernelCase stream_case(const std::shared_ptr<const Pool>& pool, PanelType type, size_t rows) {
  std::vector<PackedMatrix> matrices;
  size_t used = 0;
  for (size_t i = 0;; ++i) {
    const PackedMatrix matrix = pool->matrix(type, kLayer[i % std::size(kLayer)], used);
    const size_t bytes = matrix.panel_count() * matrix.panel_bytes();
    if (used + bytes > kPoolBytes) break;
    matrices.push_back(matrix);
    used += bytes;
  }
  const auto buffers = std::make_shared<Rows>(rows);
  const auto run = [pool, buffers, matrices = std::move(matrices)](ThreadTeam& team) {
    for (const PackedMatrix& matrix : matrices) buffers->multiply(team, matrix);
  };
  return {fmt::format("{} gemv", type_name(type)),
          fmt::format("{} of 1024 to 4096, from memory", rows == 1 ? "a row" : fmt::format("{} rows", rows)),
          LimitKind::kRead, static_cast<double>(used), run};
}

KernelCase prompt_case(const std::shared_ptr<const Pool>& pool, PanelType type, const Shape& shape, size_t rows) {
  const auto buffers = std::make_shared<Rows>(rows);
  const auto run = [pool, buffers, matrix = pool->matrix(type, shape, 0)](ThreadTeam& team) {
    buffers->multiply(team, matrix);
  };
  return {fmt::format("{} gemm", type_name(type)), fmt::format("[{}, {}] x {}", rows, shape.channels, shape.columns),
          arithmetic(type), 2.0 * static_cast<double>(rows * shape.channels * shape.columns), run};
}

}  // namespace

std::vector<KernelCase> stream_kernel_cases() {
  const auto pool = std::make_shared<const Pool>();
  std::vector<KernelCase> cases;
  for (const PanelType type : {PanelType::kF32, PanelType::kBf16, PanelType::kInt8Symmetric, PanelType::kInt4}) {
    cases.push_back(stream_case(pool, type, 1));
    if (type == PanelType::kF32) continue;
    for (const size_t rows : {4, 16}) cases.push_back(stream_case(pool, type, rows));
    for (const size_t rows : {41, 126}) {
      for (const Shape& shape : {kLayer[2], kLayer[3]}) cases.push_back(prompt_case(pool, type, shape, rows));
    }
  }
  return cases;
}

}  // namespace syrinx::bench
