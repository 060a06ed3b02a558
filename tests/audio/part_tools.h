// Reads a recording as far as it is whole, and keeps the warnings.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "audio/decode/sound_file.h"

namespace syrinx {

struct ReadPart {
  Status status;
  int rate_hz = 0;
  std::vector<float> samples;
  std::vector<std::string> warnings;
};

inline ReadPart read_part(const std::string& file, const SoundLimits& limits = {}) {
  ReadPart part;
  const SoundSink sink{.begin =
                           [&](int rate_hz, std::optional<uint64_t>) {
                             part.rate_hz = rate_hz;
                             return Status();
                           },
                       .add =
                           [&](std::span<const float> samples) {
                             part.samples.insert(part.samples.end(), samples.begin(), samples.end());
                             return Status();
                           },
                       .warn = [&](const std::string& sentence) { part.warnings.push_back(sentence); }};
  part.status = read_sound(std::as_bytes(std::span(file)), "me", limits, sink);
  return part;
}

}  // namespace syrinx
