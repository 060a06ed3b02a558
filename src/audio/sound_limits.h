#pragma once

namespace syrinx {

// Limits of the readers of sound files; more is kLimitExceeded.
struct SoundLimits {
  double max_seconds = 3600;
  int max_channels = 8;
  int min_rate_hz = 1000;
  int max_rate_hz = 384000;
};

}  // namespace syrinx
