// From window to window through a sound of any length (spec whisper.md, section 6; openai/whisper, transcribe.py):
// where each begins, what it is told of the text before, and which segments it gives.  No network is in here: the
// caller decodes each window and puts the result back.  One thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/whisper/segments.h"
#include "text/tokens/byte_bpe.h"

namespace syrinx::whisper {

// The decoder's result for a window.
struct DecodedWindow {
  std::vector<int32_t> tokens;           // without the end of text
  std::vector<float> log_probabilities;  // of each token
  float mean_log_probability = 0;        // the end of text counted in
  float no_speech = 0;                   // probability
  float temperature = 0;
  float compression_ratio = 0;
  bool is_speech = false;  // its text stands, whatever no_speech says
};

struct LongFormSettings {
  size_t window_frames = 3000;        // of mel: 30 s
  size_t max_prompt_tokens = 223;     // of the text before: half of the 448 positions but one
  bool condition_on_previous = true;  // earlier text becomes the prompt
  // The prompt before all text, at most max_prompt_tokens: told to each window with what was said before it, or else,
  // as if it had been said, as long as earlier text is told.
  std::vector<int32_t> prompt = {};
  bool carry_prompt = false;
  float no_speech_threshold = 0.6f;         // above it a window is skipped, unless
  float log_probability_threshold = -1.0f;  // its mean log-probability is above this
};

class LongForm {
 public:
  struct Window {
    size_t first_frame = 0, frames = 0;  // of mel
    std::vector<int32_t> prompt;         // of the text before
  };

  // `bpe` and `tokens` must outlive it; the sound has `content_frames` of 10 ms.
  LongForm(const text::ByteBpe& bpe, const Tokens& tokens, size_t content_frames, const LongFormSettings& settings);

  // The window to decode now; nothing at the end of the sound.
  std::optional<Window> next() const;
  // Whether a window holds no speech, whatever its text.
  bool is_silence(const DecodedWindow& decoded) const;
  // The segments of that window, with times of the whole sound; none if it counts as silence.
  std::vector<Segment> cut(const DecodedWindow& decoded) const;
  // Ends the window: takes the segments that cut() gave, with words placed in them or not, empties those that say
  // nothing, and goes on.
  void accept(const DecodedWindow& decoded, std::vector<Segment> segments, bool with_words);

  // Ends the window without a segment: there is nothing to hear in it.
  void skip() { frame_ += window_frames(); }

  double last_speech_s() const { return last_speech_s_; }  // for place_words()
  std::vector<Segment>& segments() { return segments_; }   // so far
  size_t frame() const { return frame_; }                  // where the next window begins

 private:
  size_t window_frames() const;

  const text::ByteBpe& bpe_;
  const Tokens& tokens_;
  size_t content_frames_;
  LongFormSettings settings_;
  size_t frame_ = 0;
  double last_speech_s_ = 0;
  std::vector<Segment> segments_;
  std::vector<int32_t> said_;  // the prompt and all tokens so far
  size_t prompt_begin_ = 0;    // what was said before it is not told again
};

}  // namespace syrinx::whisper
