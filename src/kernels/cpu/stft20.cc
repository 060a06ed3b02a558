// Twenty points are too few for a fast transform to pay: a frame is one small product with a matrix of the windowed
// sines and cosines, a vector of bins at a time.  Magnitudes and angles are then made on a block of frames.
#include "kernels/stft20.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/stft20.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/tail-inl.h"

#ifndef SYRINX_KERNELS_CPU_STFT20_ONCE_
#define SYRINX_KERNELS_CPU_STFT20_ONCE_
namespace syrinx::kernels {
namespace {

constexpr size_t kBlock = 16;  // frames between two passes over their bins
constexpr size_t kBlockBins =
    kBlock * kStftBins;  // a multiple of every vector up to 16 lanes; transform() does the rest
constexpr size_t kOverlap = kStftSize / kStftHop;  // frames that meet in one step

// Rows of the forward matrix are padded to 16 lanes: [20][16] cosines and [20][16] sines, the window folded in.
// The inverse one is [11][20] and [11][20]: real parts twice but for the two ends, 1 / 20 and the window folded in.
struct Tables {
  alignas(64) float forward_re[kStftSize][16] = {};
  alignas(64) float forward_im[kStftSize][16] = {};
  alignas(64) float inverse_re[kStftBins][kStftSize] = {};
  alignas(64) float inverse_im[kStftBins][kStftSize] = {};
  float window_squared[kStftSize] = {};

  Tables() {
    const double turn = 2.0 * std::numbers::pi / kStftSize;
    for (size_t i = 0; i < kStftSize; ++i) {
      const double window = 0.5 - 0.5 * std::cos(turn * static_cast<double>(i));
      window_squared[i] = static_cast<float>(window * window);
      for (size_t k = 0; k < kStftBins; ++k) {
        const double angle = turn * static_cast<double>(i * k % kStftSize);
        const bool end = k == 0 || k == kStftBins - 1;
        const double inverse = window * (end ? 1.0 : 2.0) / kStftSize;
        forward_re[i][k] = static_cast<float>(window * std::cos(angle));
        inverse_re[k][i] = static_cast<float>(inverse * std::cos(angle));
        // The ends of a real signal's spectrum are real: their sines are zero, not the rounding of sin(pi k).
        forward_im[i][k] = end ? 0.0f : static_cast<float>(-window * std::sin(angle));
        inverse_im[k][i] = end ? 0.0f : static_cast<float>(-inverse * std::sin(angle));
      }
    }
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

// The sample that stands at `index` after reflection at both ends.
inline size_t reflect(std::ptrdiff_t index, size_t n) {
  const auto last = static_cast<std::ptrdiff_t>(n) - 1;
  if (index < 0) index = -index;
  if (index > last) index = 2 * last - index;
  return static_cast<size_t>(index);
}

}  // namespace
}  // namespace syrinx::kernels
#endif  // SYRINX_KERNELS_CPU_STFT20_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {

// re[11], im[11] of one frame; both have room for 16 values.
HWY_INLINE void transform_frame(const Tables& table, const float* frame, float* re, float* im) {
  const hn::CappedTag<float, 16> d;
  for (size_t k = 0; k < kStftBins; k += hn::Lanes(d)) {
    auto a = hn::Zero(d), b = hn::Zero(d);
    for (size_t i = 0; i < kStftSize; ++i) {
      const auto x = hn::Set(d, frame[i]);
      a = hn::MulAdd(x, hn::LoadU(d, table.forward_re[i] + k), a);
      b = hn::MulAdd(x, hn::LoadU(d, table.forward_im[i] + k), b);
    }
    hn::StoreU(a, d, re + k);
    hn::StoreU(b, d, im + k);
  }
}

HWY_INLINE void to_polar(float* re_to_magnitude, float* im_to_angle, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t here = std::min(lanes, n - i);
    const auto re = load_n(d, re_to_magnitude + i, here);
    // The sum may be -0 where it should be 0, and the angle of a negative real number would then be -pi.
    const auto im = hn::Add(load_n(d, im_to_angle + i, here), hn::Zero(d));
    store_n(hn::Sqrt(hn::MulAdd(re, re, hn::Mul(im, im))), d, re_to_magnitude + i, here);
    store_n(Atan2(d, im, re), d, im_to_angle + i, here);
  }
}

void stft_range(const float* signal, size_t n, size_t begin, size_t end, View<float, 2> out) {
  const Tables& table = tables();
  float frame[kStftSize];
  float re[kBlockBins + 16], im[kBlockBins + 16];  // a frame's last vector runs into the next frame's place
  for (size_t first = begin; first < end; first += kBlock) {
    const size_t frames = std::min(kBlock, end - first);
    for (size_t f = 0; f < frames; ++f) {
      const auto start =
          static_cast<std::ptrdiff_t>((first + f) * kStftHop) - static_cast<std::ptrdiff_t>(kStftSize / 2);
      const float* from = frame;
      if (start >= 0 && static_cast<size_t>(start) + kStftSize <= n) {
        from = signal + start;
      } else {
        for (size_t i = 0; i < kStftSize; ++i) frame[i] = signal[reflect(start + static_cast<std::ptrdiff_t>(i), n)];
      }
      transform_frame(table, from, re + f * kStftBins, im + f * kStftBins);
    }
    to_polar(re, im, frames * kStftBins);
    for (size_t f = 0; f < frames; ++f) {
      float* row = out.row(first - begin + f);
      std::copy_n(re + f * kStftBins, kStftBins, row);
      std::copy_n(im + f * kStftBins, kStftBins, row + kStftBins);
    }
  }
}

// Magnitude and angle of n bins (or, for the head, their logarithm and arc sine) to real and imaginary parts.
template <bool kHead>
HWY_INLINE void to_cartesian(float* magnitude_to_re, float* angle_to_im, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t here = std::min(lanes, n - i);
    auto magnitude = load_n(d, magnitude_to_re + i, here), angle = load_n(d, angle_to_im + i, here);
    if constexpr (kHead) {
      magnitude = Exp(d, magnitude);
      angle = Sin(d, angle);
    }
    store_n(hn::Mul(magnitude, Cos(d, angle)), d, magnitude_to_re + i, here);
    store_n(hn::Mul(magnitude, Sin(d, angle)), d, angle_to_im + i, here);
  }
}

// 20 windowed samples of one frame.
HWY_INLINE void inverse_frame(const Tables& table, const float* re, const float* im, float* frame) {
  const hn::CappedTag<float, 4> d;  // 20 is a multiple of 4 and of 1, the lanes that this tag can have
  for (size_t i = 0; i < kStftSize; i += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (size_t k = 0; k < kStftBins; ++k) {
      sum = hn::MulAdd(hn::Set(d, re[k]), hn::LoadU(d, table.inverse_re[k] + i), sum);
      sum = hn::MulAdd(hn::Set(d, im[k]), hn::LoadU(d, table.inverse_im[k] + i), sum);
    }
    hn::StoreU(sum, d, frame + i);
  }
}

// Adds frame t to the steps that it covers: its quarter q to step t - 2 + q.
HWY_INLINE void overlap_add(const float* frame, size_t t, size_t begin, size_t end, float* out) {
  for (size_t q = 0; q < kOverlap; ++q) {
    const size_t step = t + q;  // plus 2: the two steps cropped at the start
    if (step < begin + 2 || step >= end + 2) continue;
    float* to = out + (step - 2 - begin) * kStftHop;
    for (size_t i = 0; i < kStftHop; ++i) to[i] += frame[q * kStftHop + i];
  }
}

// Divides by the squared windows of those frames that exist: 1.5 but for the first and the last steps.
HWY_INLINE void divide_by_windows(const Tables& table, size_t total, size_t begin, size_t end, float* out) {
  for (size_t step = begin; step < end; ++step) {
    float* to = out + (step - begin) * kStftHop;
    for (size_t i = 0; i < kStftHop; ++i) {
      float sum = 0;
      for (size_t q = 0; q < kOverlap; ++q) {
        if (step + 2 >= q && step + 2 - q < total) sum += table.window_squared[q * kStftHop + i];
      }
      to[i] /= sum;
    }
  }
}

template <bool kHead>
HWY_INLINE void istft_steps(const SpectrumPart& spectrum, size_t begin, size_t end, float* out) {
  const Tables& table = tables();
  std::fill_n(out, (end - begin) * kStftHop, 0.0f);
  float re[kBlockBins], im[kBlockBins], frame[kStftSize];
  const size_t first_row = begin == 0 ? 0 : begin - 1, last_row = std::min(spectrum.total, end + 2);
  for (size_t first = first_row; first < last_row; first += kBlock) {
    const size_t frames = std::min(kBlock, last_row - first);
    for (size_t f = 0; f < frames; ++f) {
      const float* row = spectrum.rows.row(first + f - spectrum.first);
      std::copy_n(row, kStftBins, re + f * kStftBins);
      std::copy_n(row + kStftBins, kStftBins, im + f * kStftBins);
    }
    to_cartesian<kHead>(re, im, frames * kStftBins);
    for (size_t f = 0; f < frames; ++f) {
      inverse_frame(table, re + f * kStftBins, im + f * kStftBins, frame);
      overlap_add(frame, first + f, begin, end, out);
    }
  }
  divide_by_windows(table, spectrum.total, begin, end, out);
}

void istft_range(const SpectrumPart& spectrum, size_t begin, size_t end, float* out) {
  istft_steps<false>(spectrum, begin, end, out);
}
void istft_head_range(const SpectrumPart& spectrum, size_t begin, size_t end, float* out) {
  istft_steps<true>(spectrum, begin, end, out);
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(stft_range);
HWY_EXPORT(istft_range);
HWY_EXPORT(istft_head_range);

namespace {
void check_part(const SpectrumPart& spectrum, size_t begin, size_t end, std::span<float> out) {
  const size_t first = begin == 0 ? 0 : begin - 1, last = std::min(spectrum.total, end + 2);
  SYRINX_CHECK(begin <= end && end < spectrum.total && out.size() >= (end - begin) * kStftHop,
               "steps {} to {} of {} rows, room for {} samples", begin, end, spectrum.total, out.size());
  SYRINX_CHECK(spectrum.first <= first && last <= spectrum.first + spectrum.rows.extent(0),
               "rows {} to {} needed, {} given from {}", first, last, spectrum.rows.extent(0), spectrum.first);
}
}  // namespace

void stft20(std::span<const float> signal, size_t begin, size_t end, View<float, 2> out) {
  SYRINX_CHECK(signal.size() > kStftSize / 2 && begin <= end && end <= stft20_rows(signal.size()),
               "frames {} to {} of {} samples", begin, end, signal.size());
  SYRINX_DCHECK(out.extent(0) >= end - begin && out.extent(1) == 2 * kStftBins, "out [{}, {}]", out.extent(0),
                out.extent(1));
  HWY_DYNAMIC_DISPATCH(stft_range)(signal.data(), signal.size(), begin, end, out);
}

void istft20(const SpectrumPart& spectrum, size_t begin, size_t end, std::span<float> out) {
  if (begin == end) return;
  check_part(spectrum, begin, end, out);
  HWY_DYNAMIC_DISPATCH(istft_range)(spectrum, begin, end, out.data());
}

void istft20_of_head(const SpectrumPart& raw, size_t begin, size_t end, std::span<float> out) {
  if (begin == end) return;
  check_part(raw, begin, end, out);
  HWY_DYNAMIC_DISPATCH(istft_head_range)(raw, begin, end, out.data());
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
