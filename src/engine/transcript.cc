#include "engine/transcript.h"

namespace syrinx {

std::string Transcript::text() const {
  std::string joined;
  for (const TranscriptSegment& segment : segments) {
    if (segment.text.empty()) continue;
    if (!joined.empty()) joined += ' ';
    joined += segment.text;
  }
  return joined;
}

}  // namespace syrinx
