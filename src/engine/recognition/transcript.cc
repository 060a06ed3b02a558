#include "engine/recognition/transcript.h"

namespace syrinx {

void append_word(std::string& text, const TranscriptWord& word) {
  if (!text.empty() && word.spaced) text += ' ';
  text += word.text;
}

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
