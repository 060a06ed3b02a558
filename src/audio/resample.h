// Another sampling rate for a whole sound: the polyphase filter that SciPy's resample_poly uses by default (spec
// pocket-tts.md, section 5.1; scipy.signal.resample_poly and firwin).
//
// With up : down the rates' lowest terms and M the larger one, the filter is the ideal low-pass of 1 / M under a Kaiser
// window (beta 5) of 20 M + 1 points, its sum 1, times `up`; y[m] = sum over n of x[n] h[m down - n up + 10 M], zeros
// outside.  The length becomes ceil(n up / down).  Agrees with SciPy to a few 1e-7 of the sound's largest value.
// For whole sounds; stream_resampler.h gives the same for blocks.  Pure, thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "audio/stream_resampler.h"
#include "base/result.h"

namespace syrinx {

inline constexpr size_t kMaxResampledSamples = size_t{1} << 28;  // 1 GiB, three hours at 24 kHz

// The same samples when the rates are equal.  kLimitExceeded: a rate outside the bounds above, or a result that is too
// long.  Memory: the result, and for rates without a common divisor
// a filter of up to 35 MB, 66 MB while it is made.
Result<std::vector<float>> resample(std::span<const float> sound, int from_hz, int to_hz);

}  // namespace syrinx
