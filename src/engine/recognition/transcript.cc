#include "engine/recognition/transcript.h"

namespace syrinx {

void append_word(std::string& text, const TranscriptWord& word) {
  if (!text.empty() && word.spaced) text += ' ';
  text += word.text;
}

void append_segment(std::string& text, const TranscriptSegment& segment) {
  if (segment.text.empty()) return;
  if (!text.empty() && segment.spaced) text += ' ';
  text += segment.text;
}

std::string Transcript::text() const {
  std::string joined;
  for (const TranscriptSegment& segment : segments) append_segment(joined, segment);
  return joined;
}

}  // namespace syrinx
