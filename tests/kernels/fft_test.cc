#include "kernels/fft.h"

#include <complex>
#include <numbers>

#include "for_each_target.h"

namespace syrinx::kernels {
namespace {

// e^(-2 pi i n k / size), from a table: the sines of the C library take most of the time on an emulated processor.
std::complex<double> turn(size_t n, size_t k, size_t size) {
  static std::vector<std::complex<double>> table;
  if (table.size() != size) {
    table.resize(size);
    for (size_t i = 0; i < size; ++i) {
      table[i] = std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size));
    }
  }
  return table[n * k % size];
}

// Each pass rounds a few times; in the worst case the errors add over the sum of the magnitudes.
double pass_factor(size_t size) { return 4.0 * (std::log2(static_cast<double>(size)) + 2.0); }

struct Batch {
  Batch(size_t size, size_t frames, Fill fill)
      : plan(*RealFft::create(size)),
        count(frames),
        input(frames * (size + 3), static_cast<uint32_t>(size), fill),
        re(frames * (plan.bins() + 1)),
        im(frames * (plan.bins() + 1)),
        scratch(plan.scratch_size()) {}
  View<const float, 2> in() const { return {input.data(), {count, plan.size()}, {plan.size() + 3, 1}}; }
  View<float, 2> real() { return {re.data(), {count, plan.bins()}, {plan.bins() + 1, 1}}; }
  View<float, 2> imaginary() { return {im.data(), {count, plan.bins()}, {plan.bins() + 1, 1}}; }
  RealFft plan;
  size_t count;
  TestValues input;
  std::vector<float> re, im, scratch;
};

void expect_forward(Batch& b, size_t bin_step) {
  const size_t size = b.plan.size();
  for (size_t f = 0; f < b.count; ++f) {
    for (size_t k = 0; k < b.plan.bins(); k += bin_step) {
      Expected re, im;
      for (size_t n = 0; n < size; ++n) {
        const std::complex<double> w = turn(n, k, size);
        re.add(b.in()(f, n), w.real());
        im.add(b.in()(f, n), w.imag());
      }
      re.magnitude = im.magnitude = re.magnitude + im.magnitude;
      ASSERT_TRUE(within(re, pass_factor(size), b.real()(f, k))) << "size " << size << " frame " << f << " bin " << k;
      ASSERT_TRUE(within(im, pass_factor(size), b.imaginary()(f, k)))
          << "size " << size << " frame " << f << " bin " << k;
    }
    ASSERT_EQ(b.imaginary()(f, 0), 0.0f);
    ASSERT_EQ(b.imaginary()(f, size / 2), 0.0f);
  }
}

void expect_round_trip(Batch& b) {
  const size_t size = b.plan.size();
  std::vector<float> back(b.count * (size + 1));
  const View<float, 2> out(back.data(), {b.count, size}, {size + 1, 1});
  b.plan.inverse(b.real(), b.imaginary(), out, b.scratch);
  for (size_t f = 0; f < b.count; ++f) {
    double mean = 0;
    for (size_t n = 0; n < size; ++n) mean += std::abs(static_cast<double>(b.in()(f, n)));
    for (size_t n = 0; n < size; ++n) {
      ASSERT_NEAR(out(f, n), b.in()(f, n), 2 * pass_factor(size) * FLT_EPSILON * mean + FLT_MIN) << size << " " << n;
    }
  }
}

void run_case(size_t size, size_t frames, Fill fill = Fill::kNormal, size_t bin_step = 1) {
  Batch b(size, frames, fill);
  b.plan.forward(b.in(), b.real(), b.imaginary(), b.scratch);
  expect_forward(b, bin_step);
  expect_round_trip(b);
}

TEST(RealFft, EverySmallSizeAndBatch) {
  for_each_target([] {
    for (size_t size = 2; size <= 64; size += 2) {
      if (!RealFft::create(size)) continue;
      for (const size_t frames : {1, 3, 17}) run_case(size, frames);
    }
  });
}

TEST(RealFft, TheSizesOfFrontEnds) {
  for_each_target([] {
    for (const size_t size : {20, 400, 480, 512, 600, 1024, 1920})
      run_case(size, 2, Fill::kNormal, size > 500 ? 97 : 29);
    for (const Fill fill : {Fill::kZeros, Fill::kDenormal, Fill::kLarge}) run_case(60, 5, fill);
  });
}

// The inverse alone, against its definition: a spectrum that no forward transform of ours made.
TEST(RealFft, InverseMatchesTheDefinition) {
  for_each_target([] {
    for (const size_t size : {2, 6, 8, 20, 30, 48}) {
      Batch b(size, 1, Fill::kZeros);
      const TestValues re(b.plan.bins(), 1), im(b.plan.bins(), 2);
      std::copy_n(re.data(), b.plan.bins(), b.re.data());
      std::copy_n(im.data(), b.plan.bins(), b.im.data());
      std::vector<float> out(size);
      b.plan.inverse(b.real(), b.imaginary(), {out.data(), {1, size}}, b.scratch);
      for (size_t n = 0; n < size; ++n) {
        Expected want;
        for (size_t k = 0; k <= size / 2; ++k) {
          const bool end = k == 0 || k == size / 2;
          const std::complex<double> bin(re[k], end ? 0.0 : im[k]);
          want.value += (end ? 1.0 : 2.0) * (bin * std::conj(turn(n, k, size))).real() / static_cast<double>(size);
          want.magnitude += 2.0 * std::abs(bin) / static_cast<double>(size);
        }
        ASSERT_TRUE(within(want, pass_factor(size), out[n])) << size << " " << n;
      }
    }
  });
}

TEST(RealFft, SizesThatAreNotOffered) {
  for (const size_t size : {0, 1, 3, 14, 22, 400 * 7, 65538, 1 << 20}) {
    const Result<RealFft> plan = RealFft::create(size);
    ASSERT_FALSE(plan) << size;
    EXPECT_EQ(plan.error().code, Code::kUnsupported);
    EXPECT_NE(plan.error().message.find(std::to_string(size)), std::string::npos);
  }
  EXPECT_TRUE(RealFft::create(65536));
}

}  // namespace
}  // namespace syrinx::kernels
