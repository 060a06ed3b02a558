// Any bytes as a recording: an answer within the limits, never a crash.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "audio/recording.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const syrinx::SoundLimits limits{.max_seconds = 5};
  const auto recording = syrinx::read_recording(std::as_bytes(std::span(data, size)), "input", limits);
  if (!recording) {
    SYRINX_CHECK(!recording.error().message.empty() && recording.error().message.size() < 300);
    return 0;
  }
  SYRINX_CHECK(recording->rate_hz >= limits.min_rate_hz && recording->rate_hz <= limits.max_rate_hz);
  SYRINX_CHECK(recording->seconds() <= limits.max_seconds);
  for (const float sample : recording->samples) SYRINX_CHECK(std::isfinite(sample));
  return 0;
}
