#include "nn/lstm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/pack.h"

namespace syrinx::nn {
namespace {

struct Weights {
  size_t inputs, width;
  std::vector<float> ih[2], hh[2], bias[2];  // [4H][in], [4H][H], [4H]

  Weights(size_t in, size_t h, uint32_t seed) : inputs(in), width(h) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.4f);
    for (int d = 0; d < 2; ++d) {
      ih[d].resize(4 * h * in);
      hh[d].resize(4 * h * h);
      bias[d].resize(4 * h);
      for (auto* values : {&ih[d], &hh[d], &bias[d]})
        for (float& v : *values) v = normal(random);
    }
  }
};

double sigmoid(double v) { return 1.0 / (1.0 + std::exp(-v)); }

// PyTorch's definition, in double.
std::vector<std::vector<double>> twin(const Weights& w, const std::vector<std::vector<float>>& x) {
  std::vector<std::vector<double>> out(x.size(), std::vector<double>(2 * w.width));
  for (size_t d = 0; d < 2; ++d) {
    std::vector<double> h(w.width), c(w.width);
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t t = d == 0 ? i : x.size() - 1 - i;
      std::vector<double> z(4 * w.width);
      for (size_t g = 0; g < z.size(); ++g) {
        z[g] = w.bias[d][g];
        for (size_t k = 0; k < w.inputs; ++k) z[g] += static_cast<double>(w.ih[d][g * w.inputs + k]) * x[t][k];
        for (size_t k = 0; k < w.width; ++k) z[g] += w.hh[d][g * w.width + k] * h[k];
      }
      for (size_t j = 0; j < w.width; ++j) {
        c[j] = sigmoid(z[w.width + j]) * c[j] + sigmoid(z[j]) * std::tanh(z[2 * w.width + j]);
        h[j] = sigmoid(z[3 * w.width + j]) * std::tanh(c[j]);
        out[t][d * w.width + j] = h[j];
      }
    }
  }
  return out;
}

class LstmTest : public ::testing::TestWithParam<int> {};

TEST_P(LstmTest, MatchesItsTwinAlsoWithRepeatedRows) {
  const size_t in = 20, width = 16, tokens = 7;
  const Weights w(in, width, 5);
  const auto input = kernels::pack_f32(
      {.columns = 8 * width, .channels = in},
      [&](size_t n, size_t k, size_t) { return w.ih[n / (4 * width)][n % (4 * width) * in + k]; },
      [&] {
        std::vector<float> both(w.bias[0]);
        both.insert(both.end(), w.bias[1].begin(), w.bias[1].end());
        return both;
      }());
  kernels::OwnedMatrix recurrent[2];
  for (size_t d = 0; d < 2; ++d)
    recurrent[d] = kernels::pack_f32({.columns = 4 * width, .channels = width},
                                     [&](size_t n, size_t k, size_t) { return w.hh[d][n * width + k]; }, {});
  const Lstm lstm_weights{
      .inputs = in, .width = width, .input = input.view, .recurrent = {recurrent[0].view, recurrent[1].view}};
  ThreadTeam team(GetParam());
  Runner runner(team);
  Plane x, gates, out;
  x.prepare(tokens, in, kernels::Storage::kF32);
  gates.prepare(tokens, 8 * width, kernels::Storage::kF32);
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (size_t t = 0; t < tokens; ++t)
    for (size_t k = 0; k < in; ++k) x.f32(t)[k] = normal(random);
  std::vector<int32_t> long_rows(150);  // more steps than a job has
  for (size_t i = 0; i < long_rows.size(); ++i) long_rows[i] = static_cast<int32_t>(i * tokens / long_rows.size());
  for (const std::vector<int32_t>& rows : {std::vector<int32_t>{}, {0, 0, 1, 2, 2, 2, 3, 4, 5, 5, 6}, long_rows}) {
    std::vector<std::vector<float>> sequence;
    const size_t steps = rows.empty() ? tokens : rows.size();
    for (size_t t = 0; t < steps; ++t) {
      const float* row = x.f32(rows.empty() ? t : static_cast<size_t>(rows[t]));
      sequence.emplace_back(row, row + in);
    }
    out.prepare(steps, 2 * width, kernels::Storage::kF32);
    lstm(runner, lstm_weights, x.view(), rows, gates.view(), out.view());
    const std::vector<float> whole(out.f32(), out.f32() + steps * out.stride());
    size_t jobs = 0;
    runner.set_between([&jobs] { ++jobs; });
    lstm(runner, lstm_weights, x.view(), rows, gates.view(), out.view());
    runner.set_between({});
    EXPECT_GE(jobs, steps / 64);
    EXPECT_EQ(std::vector<float>(out.f32(), out.f32() + steps * out.stride()), whole);
    const auto expected = twin(w, sequence);
    for (size_t t = 0; t < steps; ++t)
      for (size_t j = 0; j < 2 * width; ++j) ASSERT_NEAR(out.f32(t)[j], expected[t][j], 2e-6) << t << ", " << j;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, LstmTest, ::testing::Values(1, 2, 3));

TEST(Adain, CoefficientsNormaliseEachChannel) {
  const size_t rows = 700, channels = 5;
  ThreadTeam team(2);
  Runner runner(team);
  Plane plane;
  plane.prepare(rows, channels, kernels::Storage::kF32);
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  for (size_t t = 0; t < rows; ++t)
    for (size_t c = 0; c < channels; ++c) plane.f32(t)[c] = 100.0f * static_cast<float>(c) + normal(random);
  PlaneStats stats;
  runner.stats(plane, stats);
  const std::vector<float> gamma_beta = {0.0f, 0.5f, -0.5f, 1.0f, 0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
  std::vector<float> scale(32), shift(32);
  adain_coefficients(stats.tiles(), channels, gamma_beta.data(), scale.data(), shift.data());
  for (size_t c = 0; c < channels; ++c) {
    double mean = 0, var = 0;
    for (size_t t = 0; t < rows; ++t) mean += plane.f32(t)[c];
    mean /= rows;
    for (size_t t = 0; t < rows; ++t) var += std::pow(plane.f32(t)[c] - mean, 2);
    var /= rows;
    const double a = (1.0 + gamma_beta[c]) / std::sqrt(var + 1e-5);
    EXPECT_NEAR(scale[c], a, 1e-5 * a);
    EXPECT_NEAR(shift[c], gamma_beta[channels + c] - mean * a, 1e-5 * (1.0 + std::abs(mean * a)));
  }
  for (size_t c = channels; c < 32; ++c) EXPECT_EQ(scale[c], 0.0f);
}

}  // namespace
}  // namespace syrinx::nn
