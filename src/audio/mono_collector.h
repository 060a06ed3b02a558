// Where the decoders of recordings put their blocks: the mean of the channels, within the limits.
#pragma once

#include <span>
#include <string>

#include "audio/recording.h"
#include "base/result.h"

namespace syrinx {

class MonoCollector {
 public:
  // kLimitExceeded: a number of channels or a rate outside the limits.  `name` must outlive the collector.
  static Result<MonoCollector> create(int channels, int rate_hz, const SoundLimits& limits, const std::string& name);

  // Interleaved samples [frames, channels].  kLimitExceeded: too long; kDataLoss: a sample that is no number.
  Status add(std::span<const float> block);
  Recording take() && { return std::move(recording_); }

 private:
  MonoCollector(int channels, int rate_hz, const SoundLimits& limits, const std::string& name)
      : channels_(static_cast<size_t>(channels)), max_seconds_(limits.max_seconds), name_(&name) {
    recording_.rate_hz = rate_hz;
  }

  size_t channels_;
  double max_seconds_;
  const std::string* name_;
  Recording recording_;
};

}  // namespace syrinx
