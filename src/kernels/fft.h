// Real Fourier transforms of one fixed size, on batches of frames: a vector holds the same element of several frames,
// so that every size runs at full width without a shuffle.  One frame costs as much as a vector's worth of frames.
//
//   X[k] = sum over n of x[n] e^(-2 pi i n k / N), k = 0 ... N/2.   The inverse includes the factor 1/N.
//
// A plan is immutable and may be used from several threads, each with its own scratch.  Nothing is allocated in a
// transform.  Error: about log2(N) eps of the root of the frame's energy (see the test's bound).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "tensor/view.h"

namespace syrinx::kernels {

class RealFft {
 public:
  // Even sizes from 2 to 65536 whose half has no prime factor but 2, 3 and 5; others are kUnsupported.
  static Result<RealFft> create(size_t size);

  size_t size() const { return size_; }
  size_t bins() const { return size_ / 2 + 1; }
  // Floats of scratch that any call needs.
  size_t scratch_size() const;

  // frames [B, N] -> re, im [B, N/2 + 1].  im is exactly 0 at both ends.
  void forward(View<const float, 2> frames, View<float, 2> re, View<float, 2> im, std::span<float> scratch) const;
  // re, im [B, N/2 + 1] -> frames [B, N].  im is taken as 0 at both ends.
  void inverse(View<const float, 2> re, View<const float, 2> im, View<float, 2> frames, std::span<float> scratch) const;

  // For the kernel behind: the radix of each pass over N/2 points, the turns e^(-2 pi i k / N) for k < N as cosine and
  // sine.
  struct Tables {
    std::vector<size_t> radices;
    std::vector<float> cosine, sine;
  };
  const Tables& tables() const { return tables_; }

 private:
  size_t size_ = 0;
  Tables tables_;
};

}  // namespace syrinx::kernels
