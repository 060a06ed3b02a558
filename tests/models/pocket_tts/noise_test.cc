#include "models/pocket_tts/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "../../base/temp_folder.h"
#include "tensor/safetensors.h"

namespace syrinx::pocket {
namespace {

using Generator = Noise::Generator;

Noise noise_of(Generator generator, uint64_t seed, size_t width, NoiseSettings settings) {
  auto noise = Noise::create(generator, seed, width, settings);
  EXPECT_TRUE(noise) << noise.error().message;
  return std::move(*noise);
}

struct Recording {
  const char* name;
  std::optional<float> clamp;
};
class MakersNoise : public testing::TestWithParam<Recording> {};
INSTANTIATE_TEST_SUITE_P(Kinds, MakersNoise,
                         testing::Values(Recording{"normal", {}}, Recording{"short", {}}, Recording{"clamped", 0.6f},
                                         Recording{"tight", 0.2f}));

// Six blocks after torch.manual_seed(42), temperature 0.3.
TEST_P(MakersNoise, IsRepeated) {
  const std::string bytes = read_text(std::string(SYRINX_TEST_DATA) + "/pocket_tts/recordings.safetensors");
  const auto file = Safetensors::parse(std::as_bytes(std::span(bytes)), "recordings");
  ASSERT_TRUE(file) << file.error().message;
  const TensorRef* const tensor = file->find(std::string("noise.") + GetParam().name);
  ASSERT_NE(tensor, nullptr);
  const std::vector<float> expected = to_f32(tensor->bytes, tensor->dtype);
  const size_t width = tensor->dims[1];
  Noise noise = noise_of(Generator::kTorch, 42, width, {.temperature = 0.3f, .clamp = GetParam().clamp});
  std::vector<float> block(width);
  for (size_t step = 0; step < 6; ++step) {
    noise.fill(block);
    for (size_t i = 0; i < width; ++i) EXPECT_NEAR(block[i], expected[step * width + i], 1e-6) << step << ", " << i;
  }
}

// torch.manual_seed(7); torch.empty(18).normal_() of PyTorch 2.15: a rest is filled with the last sixteen, drawn anew.
TEST(TorchGenerator, FillsARestLikePyTorch) {
  const std::vector<float> expected = {-0.820134521f, 0.395631164f,  1.92636812f,   -0.330011725f, 0.198445052f,
                                       0.782072663f,  1.03910768f,   -0.724510729f, -0.848908603f, -1.21692944f,
                                       -1.81572866f,  -0.345241964f, -2.0614779f,   0.674100697f,  -1.32334578f,
                                       -1.35976899f,  -0.866701603f, -0.564006686f};
  std::vector<float> got(expected.size());
  TorchGenerator(7).fill_normal(got, 1);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-6) << i;
}

// torch.manual_seed(7); torch.empty(3).normal_(); torch.empty(2).normal_(): the sine of the second pair is kept.
TEST(TorchGenerator, KeepsASineLikePyTorch) {
  TorchGenerator torch(7);
  std::vector<float> three(3), two(2);
  torch.fill_normal(three, 1);
  torch.fill_normal(two, 1);
  EXPECT_NEAR(three[0], -0.1467950940132141, 1e-6);
  EXPECT_NEAR(three[1], 0.7861412763595581, 1e-6);
  EXPECT_NEAR(three[2], 0.9468216300010681, 1e-6);
  EXPECT_NEAR(two[0], -1.1143440008163452, 1e-6);
  EXPECT_NEAR(two[1], 1.6907901763916016, 1e-6);
}

struct Shape {
  float temperature;
  std::optional<float> clamp;
};
class BothGenerators : public testing::TestWithParam<std::tuple<Generator, Shape>> {};
INSTANTIATE_TEST_SUITE_P(Shapes, BothGenerators,
                         testing::Combine(testing::Values(Generator::kPhilox, Generator::kTorch),
                                          testing::Values(Shape{0.3f, {}}, Shape{1.0f, {}}, Shape{0.3f, 0.6f},
                                                          Shape{0.3f, 0.2f}, Shape{1.0f, 3.0f})));

// Mean, variance and limits of many numbers against those of the (truncated) normal distribution.
TEST_P(BothGenerators, HaveTheDistribution) {
  const auto& [generator, shape] = GetParam();
  Noise noise = noise_of(generator, 5, 32, {.temperature = shape.temperature, .clamp = shape.clamp});
  std::vector<float> all(32 * 4000);
  for (size_t i = 0; i < all.size(); i += 32) noise.fill(std::span(all).subspan(i, 32));
  double sum = 0, squares = 0;
  for (const float value : all) {
    sum += value;
    squares += static_cast<double>(value) * value;
    ASSERT_LE(std::abs(value), shape.clamp.value_or(100));
  }
  double variance = shape.temperature;
  if (shape.clamp) {
    const double c = *shape.clamp / std::sqrt(static_cast<double>(shape.temperature));
    variance *= 1 - 2 * c * std::exp(-c * c / 2) / std::sqrt(2 * std::numbers::pi) / std::erf(c / std::numbers::sqrt2);
  }
  const double count = static_cast<double>(all.size());
  EXPECT_NEAR(sum / count, 0, 5 * std::sqrt(variance / count));
  EXPECT_NEAR(squares / count, variance, 5 * variance * std::sqrt(2 / count));
}

TEST_P(BothGenerators, RepeatASeedOnly) {
  const auto& [generator, shape] = GetParam();
  const NoiseSettings settings{.temperature = shape.temperature, .clamp = shape.clamp};
  Noise first = noise_of(generator, 5, 32, settings), same = noise_of(generator, 5, 32, settings);
  Noise other = noise_of(generator, 6, 32, settings);
  std::vector<float> a(32), b(32), c(32);
  for (int step = 0; step < 3; ++step) {
    first.fill(a);
    same.fill(b);
    other.fill(c);
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
  }
}

TEST(Noise, IsZeroAtTemperatureZero) {
  for (const Generator generator : {Generator::kPhilox, Generator::kTorch}) {
    for (const std::optional<float> clamp : {std::optional<float>(), std::optional<float>(0.5f)}) {
      Noise noise = noise_of(generator, 1, 4, {.temperature = 0, .clamp = clamp});
      std::vector<float> block(4, 7.0f);
      noise.fill(block);
      EXPECT_EQ(block, std::vector<float>(4, 0.0f));
    }
  }
}

TEST(Noise, RefusesSettingsWithoutMeaning) {
  for (const float temperature : {-0.1f, 101.0f, std::nanf("")}) {
    const auto noise = Noise::create(Generator::kPhilox, 1, 4, {.temperature = temperature, .clamp = {}});
    ASSERT_FALSE(noise);
    EXPECT_EQ(noise.error().code, Code::kInvalidArgument);
    EXPECT_NE(noise.error().message.find("temperature"), std::string::npos);
  }
  for (const float clamp : {0.0f, -1.0f, std::nanf(""), INFINITY}) {
    const auto noise = Noise::create(Generator::kTorch, 1, 4, {.temperature = 1, .clamp = clamp});
    ASSERT_FALSE(noise);
    EXPECT_EQ(noise.error().code, Code::kInvalidArgument);
    EXPECT_NE(noise.error().message.find("clamp"), std::string::npos);
  }
}

}  // namespace
}  // namespace syrinx::pocket
