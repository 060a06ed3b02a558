#include "engine/recognition/recogniser.h"

namespace syrinx {

void tell_heard(const TranscribeOptions& options, const Transcript& transcript, size_t& told) {
  if (!options.heard) return;
  for (; told < transcript.segments.size(); ++told) options.heard(transcript.segments[told]);
}

}  // namespace syrinx
