// A transcript: the text of a recording, cut into segments with their times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace syrinx {

// Times in seconds from the beginning of the recording or stream.
struct TranscriptToken {
  int32_t id = 0;    // of the model's vocabulary
  std::string text;  // what it adds to its word; a character that several tokens spell comes with the last of them
  double start_s = 0, end_s = 0;
  float confidence = 0;  // 0 to 1
};

struct TranscriptWord {
  std::string text;  // with the punctuation that belongs to it, without blanks around it
  double start_s = 0, end_s = 0;
  float confidence = 0;  // 0 to 1: how sure the model was of its pieces
  bool spaced = true;    // a blank lies before it; none does in "20|%", "ill|-disposed", or between Chinese words
  std::vector<int32_t> tokens{};  // its own, where the family knows them
  // Where they were asked for: its tokens, whose texts together are its own but for blanks in it.
  std::vector<TranscriptToken> timed_tokens{};
};

// Words as a reader writes them.
void append_word(std::string& text, const TranscriptWord& word);
struct TranscriptSegment;
void append_segment(std::string& text, const TranscriptSegment& segment);

struct TranscriptSegment {
  // The window in which Whisper found it.
  struct Window {
    float temperature = 0;        // at which it was decoded
    float compression_ratio = 0;  // of its text
    float no_speech = 0;          // probability that it holds none
  };

  std::string text;  // without blanks around it
  double start_s = 0, end_s = 0;
  float confidence = 0;               // 0 to 1
  std::vector<int32_t> tokens;        // of the model's vocabulary, without its specials
  std::vector<TranscriptWord> words;  // where they were asked for
  std::optional<Window> window{};     // of Whisper alone
  std::optional<int> channel{};       // counted from 0, where each was heard for itself
  bool spaced = true;                 // a blank lies before it; none does where a pause cuts Chinese text
};

// Every time of a segment by `start` and `end`, functions of seconds; what would end before it begins ends there.
template <class Start, class End>
void map_times(TranscriptSegment& segment, const Start& start, const End& end) {
  const auto map = [&](auto& part) {
    part.start_s = start(part.start_s);
    part.end_s = std::max(part.start_s, static_cast<double>(end(part.end_s)));
  };
  map(segment);
  for (TranscriptWord& word : segment.words) {
    map(word);
    for (TranscriptToken& token : word.timed_tokens) {
      map(token);
      // A token without duration at the end of its word may have two places, where a pause has been left out there.
      token.start_s = std::clamp(token.start_s, word.start_s, word.end_s);
      token.end_s = std::clamp(token.end_s, word.start_s, word.end_s);
    }
  }
}

struct Transcript {
  std::string language;  // two letters, or empty where the model does not say
  double audio_s = 0;
  std::vector<TranscriptSegment> segments;  // in order of time
  std::vector<std::string> warnings{};      // sentences: what of the recording could not be heard

  // The segments joined as a reader writes them.
  std::string text() const;
};

}  // namespace syrinx
