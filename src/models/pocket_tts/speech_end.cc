#include "models/pocket_tts/speech_end.h"

#include <cmath>

namespace syrinx::pocket {

size_t max_steps(size_t tokens) {
  return static_cast<size_t>(std::ceil((static_cast<double>(tokens) / 3.0 + 2.0) * kFramesPerSecond));
}

size_t needed_positions(size_t voice_positions, size_t tokens) { return voice_positions + tokens + max_steps(tokens); }

size_t frames_after_end(std::optional<size_t> asked, std::optional<size_t> recommended, size_t guess) {
  return asked.value_or(recommended.value_or(guess + 2));
}

bool SpeechEnd::speaks(float logit) {
  const size_t step = steps_++;
  if (!end_step_ && step >= kFirstEndStep && logit > threshold_) end_step_ = step;
  // A difference, because frames_after_ is the user's and may be as large as it likes.
  ended_ = end_step_ && step - *end_step_ >= frames_after_;
  if (!ended_) ++frames_;
  return !ended_;
}

}  // namespace syrinx::pocket
