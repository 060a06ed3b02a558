#pragma once

#include <optional>

namespace syrinx {

// Limits of the readers of sound files; more is kLimitExceeded.  `channel` alone is read where it is given, counted
// from 0; one that a sound lacks is kInvalidArgument.  Where each channel counts, max_seconds are those of all
// together.
struct SoundLimits {
  double max_seconds = 3600;
  int max_channels = 8;
  int min_rate_hz = 1000;
  int max_rate_hz = 384000;
  std::optional<int> channel = {};
  bool each_channel_counts = false;
};

}  // namespace syrinx
