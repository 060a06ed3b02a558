// The two short transforms at the ends of Kokoro's generator (specification 5.1 and 5.3): 20 points, a step ("hop") of
// 5, periodic Hann window, centred.  A spectrum row holds 11 magnitudes, then 11 angles in radians: 22 floats.
// Both compute a range, so that threads and streams take what they need; nothing is allocated.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/view.h"

namespace syrinx::kernels {

inline constexpr size_t kStftSize = 20;
inline constexpr size_t kStftHop = 5;
inline constexpr size_t kStftBins = 11;

// Rows of the spectrum of `samples` samples, which may be reflected at the ends: samples / 5 + 1.
constexpr size_t stft20_rows(size_t samples) { return samples / kStftHop + 1; }

// Frames [begin, end) of the whole signal into rows 0 ... of out [end - begin, 22].  Frame t looks at samples 5t - 10
// to 5t + 9, reflected without repeating the edge sample where they leave the signal.  The signal has at least 11
// samples. The imaginary part of the first and last bin is exactly +0.  Angles: 4e-7 rad plus what the float sums give;
// the angle of an empty bin is rounding noise, whoever computes it.
void stft20(std::span<const float> signal, size_t begin, size_t end, View<float, 2> out);

// Where the rows given to an inverse transform lie in the whole spectrum.
struct SpectrumPart {
  View<const float, 2> rows;  // [R, 22]
  size_t first = 0;           // index of row 0 in the whole
  size_t total = 0;           // rows of the whole; the signal has (total - 1) * 5 samples
};

// Steps [begin, end) of the signal, 5 samples each, into out[0, 5 (end - begin)).  Step j needs rows j - 1 to j + 2 as
// far as they exist in the whole.  Overlap-add of window * inverse transform over the sum of squared windows.
void istft20(const SpectrumPart& spectrum, size_t begin, size_t end, std::span<float> out);

// The same on the raw output of the generator's last convolution: magnitude = exp(first 11), angle = sin(last 11).
void istft20_of_head(const SpectrumPart& raw, size_t begin, size_t end, std::span<float> out);

}  // namespace syrinx::kernels
