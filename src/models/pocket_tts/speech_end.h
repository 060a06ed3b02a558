// When a chunk of text has been spoken: the rules of the generation loop (spec pocket-tts.md, sections 2.4, 3.4 and 6;
// the maker's pocket_tts/models/tts_model.py).  One step is one frame of 80 ms.
#pragma once

#include <cstddef>
#include <optional>

namespace syrinx::pocket {

// The end of speech is not heeded, nor remembered, before this step.
inline constexpr size_t kFirstEndStep = 6;
inline constexpr double kFramesPerSecond = 12.5;

// Frames that a chunk of so many tokens may have at most: three tokens a second and two seconds more.
size_t max_steps(size_t tokens);
// Positions that a stream needs: those of its voice, its text, and all steps.
size_t needed_positions(size_t voice_positions, size_t tokens);
// Frames spoken from the one that ends: what is asked for, else what the model recommends, else the guess from the
// text (3 or 1) and two more.
size_t frames_after_end(std::optional<size_t> asked, std::optional<size_t> recommended, size_t guess);

// Follows the logits of one chunk.
class SpeechEnd {
 public:
  SpeechEnd(float threshold, size_t frames_after, size_t max_steps)
      : threshold_(threshold), frames_after_(frames_after), max_steps_(max_steps) {}

  // Another step may be computed.
  bool goes_on() const { return !ended_ && steps_ < max_steps_; }
  // Takes the logit of the next step; tells whether its frame is spoken.  False once: the frame after the last.
  bool speaks(float logit);

  size_t steps() const { return steps_; }    // computed
  size_t frames() const { return frames_; }  // spoken
  // The step at which the model ended, if it did.
  std::optional<size_t> end_step() const { return end_step_; }
  // The chunk was cut at its limit of steps, ended by the model or not, which deserves a warning.
  bool limited() const { return !ended_ && steps_ == max_steps_; }

 private:
  float threshold_;
  size_t frames_after_, max_steps_;
  size_t steps_ = 0, frames_ = 0;
  std::optional<size_t> end_step_;
  bool ended_ = false;
};

}  // namespace syrinx::pocket
