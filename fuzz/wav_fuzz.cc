// Any bytes as a WAV file: an answer within the limits, never a crash.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "audio/wav.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const syrinx::SoundLimits limits;
  const auto sound = syrinx::read_wav(std::as_bytes(std::span(data, size)), "input", limits);
  if (!sound) {
    SYRINX_CHECK(!sound.error().message.empty());
    return 0;
  }
  SYRINX_CHECK(sound->channels >= 1 && sound->channels <= limits.max_channels);
  SYRINX_CHECK(sound->rate_hz >= limits.min_rate_hz && sound->rate_hz <= limits.max_rate_hz);
  SYRINX_CHECK(sound->samples.size() <= size && sound->seconds() <= limits.max_seconds);
  for (float sample : sound->samples) SYRINX_CHECK(std::isfinite(sample));
  return 0;
}
