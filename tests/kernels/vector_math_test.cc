#include "kernels/vector_math.h"

#include <functional>
#include <limits>
#include <numbers>

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

using ArrayFunction = void (*)(std::span<const float>, std::span<float>);
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Evenly spaced values over [low, high], both ends included.
std::vector<float> grid(double low, double high, size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(low + (high - low) * i / (n - 1));
  return values;
}

std::vector<float> apply(ArrayFunction function, const std::vector<float>& in) {
  std::vector<float> out(in.size());
  function(in, out);
  return out;
}

double worst_ulps(ArrayFunction function, const std::vector<float>& in, const std::function<double(double)>& twin) {
  const std::vector<float> out = apply(function, in);
  double worst = 0;
  for (size_t i = 0; i < in.size(); ++i) worst = std::max(worst, ulps(out[i], twin(in[i])));
  return worst;
}

double worst_absolute(ArrayFunction function, const std::vector<float>& in, const std::function<double(double)>& twin) {
  const std::vector<float> out = apply(function, in);
  double worst = 0;
  for (size_t i = 0; i < in.size(); ++i) worst = std::max(worst, std::abs(out[i] - twin(in[i])));
  return worst;
}

double exp_twin(double x) { return std::exp(x); }
double sin_twin(double x) { return std::sin(x); }
double cos_twin(double x) { return std::cos(x); }
double sin_squared_twin(double x) { return std::sin(x) * std::sin(x); }
double tanh_twin(double x) { return std::tanh(x); }
double sigmoid_twin(double x) { return 1.0 / (1.0 + std::exp(-x)); }

TEST(VectorMath, ExpIsAccurateOverItsRange) {
  for_each_target([] {
    EXPECT_LE(worst_ulps(exp_array, grid(-87.3, 88.72, 50001), exp_twin), 1.5);
    EXPECT_LE(worst_ulps(exp_array, grid(-1e-3, 1e-3, 10001), exp_twin), 1.5);
    // Denormal results: one unit of the smallest denormal.
    EXPECT_LE(worst_absolute(exp_array, grid(-110, -87.3, 10001), exp_twin),
              1.5 * std::ldexp(1.0, -149) + 1.2e-38 * 1e-7);
  });
}

TEST(VectorMath, ExpAtTheEdges) {
  for_each_target([] {
    const std::vector<float> in = {0.0f,     -0.0f,     1e-40f,     -1e-40f, 1000.0f,
                                   -1000.0f, kInfinity, -kInfinity, 88.8f,   -104.5f};
    const std::vector<float> want = {1, 1, 1, 1, kInfinity, 0, kInfinity, 0, kInfinity, 0};
    EXPECT_EQ(apply(exp_array, in), want);
    EXPECT_TRUE(std::isnan(apply(exp_array, {kNan})[0]));
  });
}

TEST(VectorMath, SineAndCosineAreAccurateToTenThousand) {
  for_each_target([] {
    for (const double limit : {4.0, 100.0, 1e4}) {
      const std::vector<float> in = grid(-limit, limit, 30011);
      EXPECT_LE(worst_absolute(sin_array, in, sin_twin), 1.5e-7) << limit;
      EXPECT_LE(worst_absolute(cos_array, in, cos_twin), 1.5e-7) << limit;
      EXPECT_LE(worst_absolute(sin_squared_array, in, sin_squared_twin), 3e-7) << limit;
    }
    EXPECT_LE(worst_ulps(sin_array, grid(1e-30, 0.5, 20001), sin_twin), 1.5);
  });
}

TEST(VectorMath, SineNearMultiplesOfHalfPi) {
  for_each_target([] {
    std::vector<float> in;
    for (int k = -6300; k <= 6300; k += 3) {
      const float x = static_cast<float>(k * std::numbers::pi / 2);
      in.insert(in.end(), {std::nextafter(x, -kInfinity), x, std::nextafter(x, kInfinity)});
    }
    EXPECT_LE(worst_absolute(sin_array, in, sin_twin), 1.5e-7);
    EXPECT_LE(worst_absolute(cos_array, in, cos_twin), 1.5e-7);
  });
}

TEST(VectorMath, SineOfHugeAndOddArguments) {
  for_each_target([] {
    for (const ArrayFunction function : {sin_array, cos_array}) {
      for (const float value : apply(function, {1e6f, -1e8f, 3e9f, -1e20f, 3e38f})) EXPECT_LE(std::abs(value), 1.0f);
      for (const float value : apply(function, {kInfinity, -kInfinity, kNan})) EXPECT_TRUE(std::isnan(value));
    }
    EXPECT_EQ(apply(sin_array, {0.0f})[0], 0.0f);
    EXPECT_NEAR(apply(cos_array, {0.0f})[0], 1.0, 1.5e-7);
  });
}

TEST(VectorMath, TanhAndSigmoid) {
  for_each_target([] {
    EXPECT_LE(worst_ulps(tanh_array, grid(-10, 10, 50001), tanh_twin), 3.0);
    EXPECT_LE(worst_ulps(tanh_array, grid(-0.7, 0.7, 50001), tanh_twin), 3.0);
    EXPECT_LE(worst_ulps(sigmoid_array, grid(-87, 100, 50001), sigmoid_twin), 4.0);
    const std::vector<float> ends = {0.0f, 1e-40f, 100.0f, -100.0f, kInfinity, -kInfinity};
    EXPECT_EQ(apply(tanh_array, ends), (std::vector<float>{0, 1e-40f, 1, -1, 1, -1}));
    const std::vector<float> s = apply(sigmoid_array, {0.0f, 200.0f, -200.0f, kInfinity, -kInfinity});
    EXPECT_EQ(s, (std::vector<float>{0.5f, 1, 0, 1, 0}));
    EXPECT_TRUE(std::isnan(apply(tanh_array, {kNan})[0]) && std::isnan(apply(sigmoid_array, {kNan})[0]));
  });
}

TEST(VectorMath, Atan2InAllDirections) {
  std::vector<float> y, x;
  for (int i = 0; i < 6000; ++i) {
    const double angle = (i - 3000) * std::numbers::pi / 3000;
    for (const double radius : {1e-30, 1e-3, 1.0, 1e20}) {
      y.push_back(static_cast<float>(radius * std::sin(angle)));
      x.push_back(static_cast<float>(radius * std::cos(angle)));
    }
  }
  for (const float a : {0.0f, -0.0f, 1.0f, -1.0f, 1e-38f, 3e38f, -3e38f}) {
    for (const float b : {0.0f, -0.0f, 1.0f, -1.0f, 1e-38f, 3e38f, -3e38f}) y.push_back(a), x.push_back(b);
  }
  for_each_target([&] {
    std::vector<float> out(x.size());
    atan2_array(y, x, out);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::atan2(static_cast<double>(y[i]), static_cast<double>(x[i]));
      ASSERT_NEAR(out[i], want, 4e-7) << "atan2(" << y[i] << ", " << x[i] << ")";
      ASSERT_EQ(std::signbit(out[i]), std::signbit(y[i]));
    }
    const std::vector<float> nan = {kNan, 1.0f}, number = {1.0f, kNan};
    std::vector<float> two(2);
    atan2_array(nan, number, two);
    EXPECT_TRUE(std::isnan(two[0]) && std::isnan(two[1]));
  });
}

// Every length, unaligned, in place: values equal those of the same function on single elements, bit for bit, and
// nothing is written behind the end.
TEST(VectorMath, TailsUnalignedAndInPlace) {
  for_each_target([] {
    for (const ArrayFunction function :
         {exp_array, sin_array, cos_array, sin_squared_array, tanh_array, sigmoid_array}) {
      for (const size_t n : edge_sizes()) {
        TestValues values(n + 1, static_cast<uint32_t>(n), Fill::kNormal, 3.0f);
        const float behind = values[n];
        std::vector<float> want(n);
        for (size_t i = 0; i < n; ++i) function({values.data() + i, 1}, {&want[i], 1});
        function({values.data(), n}, {values.data(), n});
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(values[i], want[i]) << i << " of " << n;
        ASSERT_EQ(values[n], behind);
      }
    }
  });
}

TEST(VectorMath, EmptyArrays) {
  for_each_target([] {
    exp_array({}, {});
    atan2_array({}, {}, {});
  });
}

}  // namespace
}  // namespace syrinx::kernels
