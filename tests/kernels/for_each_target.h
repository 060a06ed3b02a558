// Base of every kernel test: the walk over all targets that this build and this processor share, and bounds computed
// from the terms of a sum, so that no test carries a tolerance set by hand.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/cpu_info.h"
#include "kernels/dispatch.h"

namespace syrinx::kernels {

// Calls test() once per target with Highway forced to it, so that the public function's dispatch is what is tested.
// Where our own extensions exist (VNNI and BF16 on AVX3, dot product and BF16 on ARM) their target runs twice: with and
// without. Prints the targets it ran.
template <class Test>
void for_each_target(Test&& test) {
  std::string ran;
  for (const int64_t target : usable_targets()) {
    force_target_for_test(target, true);
    const bool extended = use_avx512_vnni() || use_avx512_bf16() || use_neon_dotprod() || use_neon_bf16();
    for (const bool extensions : {true, false}) {
      if (!extensions && !extended) continue;
      force_target_for_test(target, extensions);
      const std::string name = std::string(hwy::TargetName(target)) + (extended && extensions ? "+" : "");
      SCOPED_TRACE(name);
      ran += " " + name;
      test();
    }
  }
  force_target_for_test(0, true);
  std::printf("targets:%s\n", ran.c_str());
}

// A value computed in double with what a float kernel may differ from it: c * eps * sum |terms|, plus the smallest
// normal number, because a kernel may flush or round a denormal.
struct Expected {
  double value = 0;
  double magnitude = 0;  // sum of |a_i * b_i|
  void add(double a, double b = 1.0) {
    value += a * b;
    magnitude += std::abs(a * b);
  }
  double bound(double c, double epsilon = FLT_EPSILON) const { return c * epsilon * magnitude + FLT_MIN; }
};

// c for a sum of n products whose order is free: n roundings of products and n of additions, halves of an epsilon each.
inline double sum_factor(size_t n) { return static_cast<double>(n) + 2.0; }

inline ::testing::AssertionResult within(const Expected& expected, double c, float actual) {
  const double error = std::abs(static_cast<double>(actual) - expected.value);
  if (error <= expected.bound(c)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << actual << " differs from " << expected.value << " by " << error
                                       << ", allowed " << expected.bound(c);
}

// Distance in units of the last place of `expected` (of a normal number at least).
inline double ulps(float actual, double expected) {
  const double magnitude = std::max(std::abs(expected), static_cast<double>(FLT_MIN));
  const double unit = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::abs(static_cast<double>(actual) - expected) / unit;
}

// Lengths around every vector width there is (4, 8, 16 lanes) and some larger.
inline const std::vector<size_t>& edge_sizes() {
  static const std::vector<size_t> sizes = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65, 100, 257};
  return sizes;
}

enum class Fill { kNormal, kZeros, kDenormal, kLarge };

// n seeded values that start `offset` floats behind the alignment of the vector's memory.
class TestValues {
 public:
  TestValues(size_t n, uint32_t seed, Fill fill = Fill::kNormal, float scale = 1.0f, size_t offset = 1)
      : storage_(n + offset), offset_(offset) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.0f, scale);
    for (float& value : storage_) {
      value = normal(generator);
      if (fill == Fill::kZeros) value = 0.0f;
      if (fill == Fill::kDenormal) value *= 1e-40f;
      if (fill == Fill::kLarge) value *= 1e15f;
    }
  }
  float* data() { return storage_.data() + offset_; }
  const float* data() const { return storage_.data() + offset_; }
  size_t size() const { return storage_.size() - offset_; }
  float& operator[](size_t i) { return data()[i]; }
  float operator[](size_t i) const { return data()[i]; }

 private:
  std::vector<float> storage_;
  size_t offset_;
};

}  // namespace syrinx::kernels
