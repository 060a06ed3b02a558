#include "nn/runner.h"

#include <gtest/gtest.h>

#include <random>

#include "kernels/pack.h"

namespace syrinx::nn {
namespace {

struct Shape {
  size_t rows, channels, columns, taps;
  int jobs;  // more than so many
};

// Many tiles, wide tiles that are cut by panels, and a single tile.
constexpr Shape kShapes[] = {{18000, 64, 96, 5, 2}, {600, 256, 2048, 3, 3}, {200, 512, 1024, 3, 1}, {40, 64, 64, 1, 0}};

std::vector<float> normals(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// The rows and the statistics that a convolution writes.
std::vector<float> convolve(Runner& runner, const PackedMatrix& matrix, const Shape& shape, const Plane& x) {
  Plane y;
  y.prepare(shape.rows, shape.columns, kernels::Storage::kF32);
  PlaneStats in_stats, out_stats;
  runner.stats(x, in_stats);
  kernels::TileStats* const stats = out_stats.prepare(shape.rows, shape.columns);
  runner.conv(matrix, {.rows = shape.rows, .pad = static_cast<ptrdiff_t>(shape.taps / 2)},
              {.data = x.row(0), .rows = shape.rows, .stride = x.stride(), .range = &in_stats.tiles()},
              {.data = y.row(0), .stride = y.stride(), .stats = stats});
  std::vector<float> out(y.f32(), y.f32() + shape.rows * y.stride());
  out.insert(out.end(), stats->values, stats->values + stats->tiles() * 4 * stats->columns);
  return out;
}

class RunnerTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, RunnerTest, ::testing::Values(1, 2, 3));

TEST_P(RunnerTest, CutConvolutionsGiveTheSameBits) {
  ThreadTeam team(GetParam());
  Runner runner(team);
  for (const Shape& shape : kShapes) {
    const std::vector<float> weights = normals(shape.columns * shape.channels * shape.taps, 1);
    const std::vector<float> bias = normals(shape.columns, 2), values = normals(shape.rows * shape.channels, 3);
    Plane x;
    x.prepare(shape.rows, shape.channels, kernels::Storage::kF32);
    for (size_t t = 0; t < shape.rows; ++t) std::copy_n(values.data() + t * shape.channels, shape.channels, x.f32(t));
    const auto matrix = kernels::pack_f32(
        {.columns = shape.columns, .channels = shape.channels, .taps = shape.taps},
        [&](size_t n, size_t k, size_t t) { return weights[(n * shape.channels + k) * shape.taps + t]; }, bias);
    const std::vector<float> whole = convolve(runner, matrix.view, shape, x);
    int jobs = 0;
    runner.set_between([&jobs] { ++jobs; });
    EXPECT_EQ(convolve(runner, matrix.view, shape, x), whole) << shape.rows << " rows";
    EXPECT_GT(jobs - 1, shape.jobs) << shape.rows << " rows";  // without that of the statistics
    int layers = 0;
    runner.set_between([&layers] { ++layers; }, [] { return false; });
    EXPECT_EQ(convolve(runner, matrix.view, shape, x), whole) << shape.rows << " rows";
    runner.set_between({});
    EXPECT_EQ(layers, 2) << shape.rows << " rows";  // the convolution and the statistics
  }
}

}  // namespace
}  // namespace syrinx::nn
