#include "engine/families/qwen_tts/speech_guard.h"

#include <algorithm>
#include <cmath>

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kDifference = 4;     // matches that one difference outweighs, and no more are stored above the bound
constexpr size_t kFewMatches = 4;     // a frame that matches so many before it repeats them
constexpr float kSmoothing = 0.125f;  // a click of one frame is no loud stretch

// Matches from which on a period is a loop: no fewer than one more turn of it.
size_t loop_matches(size_t period) { return std::max(SpeechGuard::kFirstSuspect, period); }

}  // namespace

size_t SpeechGuard::limit(size_t tokens, std::optional<double> max_seconds, double frames_per_second) {
  if (!max_seconds) return 3 * expected_frames(tokens) + 1;
  return std::max<size_t>(static_cast<size_t>(std::floor(*max_seconds * frames_per_second + 1e-9)), 1);
}

void SpeechGuard::begin(size_t codebooks, size_t expected_frames) {
  codes_.resize(kMostPeriod * codebooks);
  codebooks_ = codebooks;
  expect(expected_frames);
  frames_ = quiet_ = far_ = held_ = spoken_ = 0;
  loudest_ = smoothed_ = 0;
  firsts_.fill(0);
  suspects_.fill(0);
  wholes_.fill(0);
  cut_ = false;
  reason_ = FinishReason::kSpoken;
}

void SpeechGuard::expect(size_t expected_frames) {
  expected_ = std::max(expected_frames, SpeechGuard::expected_frames(0));
}

void SpeechGuard::note(const Frame& frame) {
  quiet_ = is_quiet(frame.samples) ? quiet_ + 1 : 0;
  note_repeats(frame.codes);
  far_ = frame.end_probability < kOutOfReach ? far_ + 1 : 0;
  ++frames_;
  const bool is_new = quiet_ == 0 && *std::ranges::max_element(firsts_) < kFewMatches;
  if (is_suspect()) {
    ++held_;
  } else {
    held_ = 0;
    spoken_ += is_new ? 1 : 0;
  }
  if (!is_lost()) return;
  cut_ = true;
  const bool is_silent = quiet_ >= kFirstSuspect;
  reason_ = is_silent ? FinishReason::kSilence : FinishReason::kRepeats;
  if (is_silent) held_ = std::min(held_, quiet_ + 1 - kFirstSuspect);
}

bool SpeechGuard::is_quiet(std::span<const float> samples) {
  float sum = 0;
  for (const float sample : samples) sum += sample * sample;
  const float square = sum / static_cast<float>(samples.size());
  smoothed_ += kSmoothing * (square - smoothed_);
  loudest_ = std::max(loudest_, smoothed_);
  return square < std::max(kQuiet * kQuiet, kQuietPart * kQuietPart * loudest_);
}

void SpeechGuard::note_repeats(std::span<const int32_t> codes) {
  for (size_t period = 1; period <= std::min(kMostPeriod, frames_); ++period) {
    const auto before = std::span(codes_).subspan((frames_ - period) % kMostPeriod * codebooks_, codebooks_);
    if (quiet_ > 0) continue;
    wholes_[period] = std::ranges::equal(before, codes) ? wholes_[period] + 1 : 0;
    size_t& firsts = firsts_[period];
    firsts = before.front() == codes.front() ? std::min(firsts + 1, loop_matches(period) + kDifference)
                                             : firsts - std::min(firsts, kDifference);
    suspects_[period] = firsts >= loop_matches(period) ? suspects_[period] + 1 : 0;
  }
  std::ranges::copy(codes, codes_.begin() + static_cast<std::ptrdiff_t>(frames_ % kMostPeriod * codebooks_));
}

bool SpeechGuard::is_suspect() const {
  return quiet_ >= kFirstSuspect || std::ranges::any_of(suspects_, [](size_t frames) { return frames > 0; });
}

// Sounds and pauses of speech, each suspect for a while, may follow one another: kLeastHeld are of one kind.
bool SpeechGuard::is_lost() const {
  if (held_ >= kMostHeld) return true;
  const bool is_late = frames_ > 2 * expected_ && far_ >= kLeastHeld;
  if (is_late && quiet_ + 1 >= kFirstSuspect + kLeastHeld) return true;
  for (size_t period = 1; period <= kMostPeriod; ++period) {
    if (is_late && suspects_[period] >= kLeastHeld) return true;
    if (wholes_[period] + 1 >= loop_matches(period) + kLeastHeld) return true;
  }
  return false;
}

bool SpeechGuard::spoken_little() const {
  const size_t tokens = (expected_ - expected_frames(0)) / (expected_frames(1) - expected_frames(0));
  return spoken_ <= std::min(kShortStart, tokens / 2);
}

}  // namespace syrinx::qwen_tts
