#include "nn/linear.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <random>

#include "kernels/pack.h"

namespace syrinx::nn {
namespace {

// Each value against a sum in double, within c eps sum |terms|; also in place of the addend, and with every column of
// padding zero behind.
void run_case(int threads, size_t rows, size_t channels, size_t columns, bool add) {
  SCOPED_TRACE(::testing::Message() << threads << " threads, " << rows << " rows, " << channels << " -> " << columns);
  std::mt19937 random(static_cast<uint32_t>(rows + channels));
  std::normal_distribution<float> normal;
  std::vector<float> weight(columns * channels), bias(columns);
  for (auto* values : {&weight, &bias})
    for (float& v : *values) v = normal(random);
  const auto matrix = kernels::pack_f32(
      {.columns = columns, .channels = channels}, [&](size_t n, size_t k, size_t) { return weight[n * channels + k]; },
      bias);
  Plane x, y;
  x.prepare(rows, channels, kernels::Storage::kF32);
  y.prepare(rows, columns, kernels::Storage::kF32);
  std::vector<float> addend(rows * columns);
  for (size_t n = 0; n < rows; ++n) {
    for (size_t k = 0; k < channels; ++k) x.f32(n)[k] = normal(random);
    for (size_t c = 0; c < columns; ++c) addend[n * columns + c] = y.f32(n)[c] = add ? normal(random) : 0.0f;
  }
  ThreadTeam team(threads);
  Runner runner(team);
  reserve_linear(runner, matrix.view, rows);
  linear(runner, matrix.view, x.view(), add ? y.view() : View<float, 2>(), y.view());
  for (size_t n = 0; n < rows; ++n) {
    for (size_t c = 0; c < columns; ++c) {
      double want = static_cast<double>(bias[c]) + addend[n * columns + c];
      double magnitude = std::fabs(bias[c]) + std::fabs(addend[n * columns + c]);
      for (size_t k = 0; k < channels; ++k) {
        const double term = static_cast<double>(x.f32(n)[k]) * weight[c * channels + k];
        want += term;
        magnitude += std::fabs(term);
      }
      const double bound = (static_cast<double>(channels) + 4.0) * FLT_EPSILON * magnitude;
      ASSERT_NEAR(y.f32(n)[c], want, bound) << "row " << n << " column " << c;
    }
    for (size_t c = columns; c < y.stride(); ++c) ASSERT_EQ(y.f32(n)[c], 0.0f) << "padding of row " << n;
  }
}

// The rows of independent streams: the bits that each row gives alone, whatever the threads, in both types.
void run_streams(int threads, bool int8, bool add) {
  SCOPED_TRACE(::testing::Message() << threads << " threads, int8 " << int8);
  constexpr size_t kRows = 5, kChannels = 70, kColumns = 170;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto weight = [&](size_t, size_t, size_t) { return normal(random); };
  const kernels::MatrixShape shape{.columns = kColumns, .channels = kChannels};
  const auto matrix = int8 ? kernels::pack_int8(shape, weight, {}) : kernels::pack_f32(shape, weight, {});
  Plane x, together, alone;
  x.prepare(kRows, kChannels, kernels::Storage::kF32);
  for (Plane* y : {&together, &alone}) y->prepare(kRows, kColumns, kernels::Storage::kF32);
  for (size_t n = 0; n < kRows; ++n) {
    for (size_t k = 0; k < kChannels; ++k) x.f32(n)[k] = normal(random);
    for (size_t c = 0; c < kColumns; ++c) together.f32(n)[c] = alone.f32(n)[c] = normal(random);
  }
  ThreadTeam team(threads);
  Runner runner(team);
  reserve_linear(runner, matrix.view, kRows);
  std::vector<Share> shares(static_cast<size_t>(team.size()));
  team.run([&](int member) {
    shares[static_cast<size_t>(member)] =
        stream_linear_part(runner, {.member = member, .rank = member, .size = team.size()}, matrix.view, x.view(),
                           add ? together.view() : View<float, 2>(), together.view());
  });
  size_t covered = 0;
  for (const Share& share : shares) covered += share.columns.end - share.columns.begin;
  EXPECT_EQ(covered, round_up(kColumns, kPanelColumns));
  for (size_t n = 0; n < kRows; ++n) {
    const View<const float, 2> in{x.f32(n), {1, kChannels}, {x.stride(), 1}};
    const View<float, 2> out{alone.f32(n), {1, kColumns}, {alone.stride(), 1}};
    linear(runner, matrix.view, in, add ? out : View<float, 2>(), out);
    for (size_t c = 0; c < kColumns; ++c) ASSERT_EQ(together.f32(n)[c], alone.f32(n)[c]) << n << " " << c;
  }
}

TEST(Linear, StreamsTogetherGiveWhatEachGivesAlone) {
  for (const int threads : {1, 2, 3}) {
    for (const bool int8 : {false, true}) {
      run_streams(threads, int8, false);
      run_streams(threads, int8, true);
    }
  }
}

TEST(Linear, OneRowAndManyMatchTheTwin) {
  for (const int threads : {1, 3}) {
    for (const size_t rows : {1, 2, 14, 15, 130}) {
      for (const bool add : {false, true}) {
        run_case(threads, rows, 24, 20, add);
        run_case(threads, rows, 33, 100, add);
        run_case(threads, rows, 64, 1, add);
      }
    }
  }
}

}  // namespace
}  // namespace syrinx::nn
