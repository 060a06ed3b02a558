// A bank of triangular filters on the mel scale in Slaney's form, as the makers of Whisper and NeMo build theirs
// (librosa.filters.mel with its defaults; specs transducer-asr.md 2.3, whisper.md 1).
//
// The scale is linear below 1000 Hz (200/3 Hz a mel) and logarithmic above (a factor of ln(6.4)/27 a mel).  Filter i
// rises from point i to point i + 1 and falls to point i + 2 of mels + 2 points at equal distances between the ends,
// and its area is 1: times 2 / (f[i + 2] - f[i]).  Each filter is kept from its first to its last weight that is not
// zero, some 500 weights in all instead of mels * bins.
//
// Immutable; thread-safe.  apply() allocates nothing, and its sums have one order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace syrinx {

class MelBank {
 public:
  struct Shape {
    size_t mels = 80;       // 1 to 512
    size_t fft_size = 512;  // even, 16 to 65536
    double rate_hz = 16000;
    double low_hz = 0;
    double high_hz = 8000;  // above low_hz, at most rate_hz / 2
  };

  // kInvalidArgument for numbers outside the bounds above.
  static Result<MelBank> slaney(const Shape& shape);
  // A checkpoint's own bank, `weights` [mels, bins].  kDataLoss for weights that are not finite; kInvalidArgument where
  // they do not make whole rows.
  static Result<MelBank> from_matrix(std::span<const float> weights, size_t mels);

  size_t mels() const { return filters_.size(); }
  size_t bins() const { return bins_; }
  size_t weight_count() const { return weights_.size(); }

  // mel[m] = sum over bins of weight[m, bin] * power[bin]; sizes bins() and mels().
  void apply(std::span<const float> power, std::span<float> mel) const;

 private:
  struct Filter {
    size_t first_bin = 0, first_weight = 0, weights = 0;
  };
  void add(std::span<const float> row);  // [bins]

  size_t bins_ = 0;
  std::vector<Filter> filters_;
  std::vector<float> weights_;
};

}  // namespace syrinx
