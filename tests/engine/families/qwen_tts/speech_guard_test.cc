// The guard alone, with scripted frames: pieces that never end, and pieces that do.
#include "engine/families/qwen_tts/speech_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "tests/models/allocation_count.h"

namespace syrinx::qwen_tts {
namespace {

constexpr size_t kCodebooks = 4, kSamples = 64;
constexpr int32_t kCodes = 2048;
constexpr float kLoud = 0.1f, kSilent = 1e-4f;

struct Scripted {
  std::vector<int32_t> codes = std::vector<int32_t>(kCodebooks);
  float level = kLoud;  // root mean square
  float end_probability = 1e-3f;
};

// Frames as speech has them: sounds of some frames of one first code, words that come again, pauses.
class Speech {
 public:
  explicit Speech(uint64_t seed, size_t longest_pause = 30) : random_(seed), longest_pause_(longest_pause) {}
  Scripted next() {
    if (left_ == 0) begin_stretch();
    --left_;
    Scripted frame = random_frame();
    if (kind_ != Kind::kSyllables) frame.codes[0] = static_cast<int32_t>(stretch_code_ + left_ % period_);
    if (kind_ == Kind::kPause) frame.level = kSilent;
    return frame;
  }
  Scripted random_frame() {
    Scripted frame;
    for (int32_t& code : frame.codes) code = static_cast<int32_t>(up_to(kCodes - 1));
    frame.level = kLoud * std::exp2(-static_cast<float>(up_to(40)) / 10);
    frame.end_probability = std::pow(10.0f, -static_cast<float>(up_to(14)));
    return frame;
  }
  size_t up_to(size_t most) { return std::uniform_int_distribution<size_t>(0, most)(random_); }

 private:
  enum class Kind { kSyllables, kSound, kPause };
  void begin_stretch() {
    const bool was_pause = kind_ == Kind::kPause;
    kind_ = std::array{Kind::kSyllables, Kind::kSyllables, Kind::kSound, Kind::kPause}[up_to(3)];
    if (was_pause) kind_ = Kind::kSyllables;
    period_ = kind_ == Kind::kSound ? 1 + up_to(5) : 1;
    left_ = 1 + up_to(kind_ == Kind::kPause ? longest_pause_ - 1 : 19);
    stretch_code_ = up_to(kCodes - 10);
  }

  std::mt19937_64 random_;
  size_t longest_pause_, left_ = 0, stretch_code_ = 0, period_ = 1;
  Kind kind_ = Kind::kSyllables;
};

struct Outcome {
  size_t made = 0, heard = 0;  // frames
  FinishReason reason = FinishReason::kLength;
  bool spoken_little = false;
};

// A piece that the model ends behind `end` frames, or, by the limit, never.
Outcome speak(SpeechGuard& guard, size_t tokens, size_t end, const std::function<Scripted(size_t)>& frame_of) {
  const size_t limit = SpeechGuard::limit(tokens, std::nullopt, 12.5);
  Outcome outcome;
  guard.begin(kCodebooks, SpeechGuard::expected_frames(tokens));
  std::vector<float> samples(kSamples);
  for (; outcome.made < std::min(limit, end);) {
    const Scripted frame = frame_of(outcome.made++);
    std::fill(samples.begin(), samples.end(), frame.level);
    guard.note({.codes = frame.codes, .end_probability = frame.end_probability, .samples = samples});
    EXPECT_LE(guard.held(), SpeechGuard::kMostHeld);
    const size_t free = outcome.made - guard.held();
    EXPECT_GE(free, outcome.heard) << "what was heard is held back";
    outcome.heard = free;
    outcome.spoken_little = guard.spoken_little();
    if (!guard.must_end()) continue;
    outcome.reason = guard.finish_reason();
    return outcome;
  }
  if (end > limit) return outcome;
  return {.made = end, .heard = end, .reason = FinishReason::kSpoken};
}

constexpr size_t kNever = SIZE_MAX;

// Frames of a state without end that may be heard, of a loop or of silence.
size_t heard_of_loop(size_t period) { return period + std::max(SpeechGuard::kFirstSuspect, period) - 1; }
constexpr size_t kHeardOfSilence = SpeechGuard::kFirstSuspect - 1;

TEST(SpeechGuard, EndlessPiecesAreHeardByRule) {
  SpeechGuard guard;
  for (size_t n = 0; n < 200; ++n) {
    SCOPED_TRACE(n);
    Speech speech(n);
    const size_t tokens = 20 + speech.up_to(80), from = speech.up_to(60), period = 1 + n / 4 % 25;
    std::vector<Scripted> loop;
    for (size_t i = 0; i < period; ++i) loop.push_back(speech.random_frame());
    const auto frame_of = [&](size_t at) {
      Scripted frame = speech.random_frame();
      if (at < from) return frame;
      switch (n % 4) {
        case 0: return loop[(at - from) % period];
        case 1: frame.codes[0] = loop[(at - from) % period].codes[0]; break;
        case 2: frame.level = kSilent; break;
        default: break;  // any codes
      }
      if (n % 8 >= 4) frame.end_probability = 1e-14f;
      return frame;
    };
    const Outcome outcome = speak(guard, tokens, kNever, frame_of);
    const size_t limit = SpeechGuard::limit(tokens, std::nullopt, 12.5);
    const size_t rule = n % 4 < 2 ? from + heard_of_loop(period) : n % 4 == 2 ? from + kHeardOfSilence : limit;
    EXPECT_LE(outcome.heard, rule);
    EXPECT_LE(outcome.made, limit);
    const FinishReason reason = n % 4 == 2 ? FinishReason::kSilence : FinishReason::kRepeats;
    EXPECT_EQ(outcome.reason, outcome.made == limit ? FinishReason::kLength : reason);
    EXPECT_EQ(outcome.made == limit, n % 4 == 3);
  }
}

TEST(SpeechGuard, ScriptedEndsAreNeverCut) {
  SpeechGuard guard;
  for (size_t n = 0; n < 200; ++n) {
    const double factor = 0.5 + 2.5 * static_cast<double>(n) / 199;
    Speech speech(1000 + n, factor < 2 ? 45 : 30);
    const size_t tokens = 1 + speech.up_to(199);
    const auto end =
        static_cast<size_t>(std::lround(factor * static_cast<double>(SpeechGuard::expected_frames(tokens))));
    const Outcome outcome = speak(guard, tokens, end, [&](size_t) {
      Scripted frame = speech.next();
      if (n % 2 == 1) frame.end_probability = 1e-14f;
      return frame;
    });
    EXPECT_EQ(outcome.reason, FinishReason::kSpoken) << n << ", " << outcome.made << " of " << end << " frames";
    EXPECT_EQ(outcome.heard, end);
  }
}

TEST(SpeechGuard, SpeechWithShortPausesIsNeverHeld) {
  SpeechGuard guard;
  Speech speech(7, SpeechGuard::kFirstSuspect - 1);
  size_t words = 0;
  const Outcome outcome = speak(guard, 200, 2000, [&](size_t) {
    EXPECT_EQ(guard.held(), 0u);
    Scripted frame = speech.next();
    frame.codes[0] = static_cast<int32_t>(++words % kCodes);  // no sound is drawn out
    return frame;
  });
  EXPECT_EQ(outcome.reason, FinishReason::kSpoken);
}

// Up to 6 s, of whatever probability of the end, within the length that the text is expected to have.
TEST(SpeechGuard, LongPauseIsGivenOnceOver) {
  SpeechGuard guard;
  for (const size_t pause : {12u, 40u, 74u, 75u}) {
    Speech speech(pause);
    const Outcome outcome = speak(guard, 100, 200, [&](size_t at) {
      EXPECT_EQ(guard.held(), at <= 60 + kHeardOfSilence || at > 60 + pause ? 0 : at - 60 - kHeardOfSilence);
      Scripted frame = speech.random_frame();
      if (at >= 60 && at < 60 + pause) frame.level = kSilent;
      frame.end_probability = 1e-14f;
      return frame;
    });
    const bool is_cut = pause == 75;
    EXPECT_EQ(outcome.reason, is_cut ? FinishReason::kSilence : FinishReason::kSpoken) << pause;
    EXPECT_EQ(outcome.heard, is_cut ? 60 + kHeardOfSilence : 200) << pause;
  }
}

// Three pieces of evidence: 2 s held, the end out of reach meanwhile, and a piece twice as long as expected.
TEST(SpeechGuard, LostEndCutsSooner) {
  SpeechGuard guard;
  const size_t tokens = 20, expected = SpeechGuard::expected_frames(tokens);
  const auto made = [&](size_t from, float end_probability) {
    Speech speech(3);
    return speak(guard, tokens, kNever,
                 [&](size_t at) {
                   Scripted frame = speech.random_frame();
                   if (at >= from) frame.level = kSilent;
                   frame.end_probability = end_probability;
                   return frame;
                 })
        .made;
  };
  EXPECT_EQ(made(2 * expected, 1e-14f), 2 * expected + kHeardOfSilence + SpeechGuard::kLeastHeld);
  EXPECT_EQ(made(2 * expected, 1e-5f), 2 * expected + kHeardOfSilence + SpeechGuard::kMostHeld);
  EXPECT_EQ(made(0, 1e-5f), kHeardOfSilence + SpeechGuard::kMostHeld);
  EXPECT_EQ(made(0, 1e-14f), kHeardOfSilence + SpeechGuard::kMostHeld);  // no longer than expected
}

// A last sound that was held is heard; the silence behind it is not.
TEST(SpeechGuard, SoundBeforeEndlessSilenceIsHeard) {
  SpeechGuard guard;
  Speech speech(9);
  const Outcome outcome = speak(guard, 100, kNever, [&](size_t at) {
    Scripted frame = speech.random_frame();
    if (at >= 30) frame.codes[0] = 5;
    if (at >= 55) frame.level = kSilent;
    return frame;
  });
  EXPECT_EQ(outcome.reason, FinishReason::kSilence);
  EXPECT_EQ(outcome.heard, 55 + kHeardOfSilence);
}

// All 16 codes of a pause may be the same.
TEST(SpeechGuard, PauseOfEqualFramesIsNoLoop) {
  SpeechGuard guard;
  Speech speech(13);
  const Scripted pause{.codes = std::vector<int32_t>(kCodebooks, 3), .level = kSilent, .end_probability = 1e-14f};
  const Outcome outcome =
      speak(guard, 100, 200, [&](size_t at) { return at >= 50 && at < 100 ? pause : speech.random_frame(); });
  EXPECT_EQ(outcome.reason, FinishReason::kSpoken);
  EXPECT_EQ(outcome.heard, 200u);
}

TEST(SpeechGuard, SilenceIsMeasuredByTheSpeech) {
  SpeechGuard guard;
  for (const auto& [level, reason] :
       {std::pair(0.019f * kLoud, FinishReason::kSilence), {0.03f * kLoud, FinishReason::kLength}}) {
    Speech speech(5);
    const Outcome outcome = speak(guard, 50, kNever, [&, level = level](size_t at) {
      Scripted frame = speech.random_frame();
      frame.level = at < 60 ? kLoud : level;
      return frame;
    });
    EXPECT_EQ(outcome.reason, reason) << level;
  }
}

TEST(SpeechGuard, LoopsWithDifferencesAreCut) {
  SpeechGuard guard;
  for (size_t period = 1; period <= SpeechGuard::kMostPeriod; ++period) {
    Speech speech(period);
    const Outcome outcome = speak(guard, 100, kNever, [&](size_t at) {
      Scripted frame = speech.random_frame();
      if (at % 30 != 29) frame.codes[0] = static_cast<int32_t>(at % period);
      return frame;
    });
    EXPECT_EQ(outcome.reason, FinishReason::kRepeats) << period;
    EXPECT_LE(outcome.heard, 3 * heard_of_loop(period)) << period;
  }
}

TEST(SpeechGuard, LittleSpeechAllowsAnotherTry) {
  SpeechGuard guard;
  const auto says = [&](size_t tokens, size_t spoken, size_t period) {
    Speech speech(11);
    const Outcome outcome = speak(guard, tokens, kNever, [&](size_t at) {
      Scripted frame = speech.random_frame();
      if (at >= spoken && period == 0) frame.level = kSilent;
      if (at >= spoken && period > 0) frame.codes[0] = static_cast<int32_t>(at % period);
      return frame;
    });
    EXPECT_NE(outcome.reason, FinishReason::kSpoken);
    return outcome.spoken_little;
  };
  EXPECT_TRUE(says(100, 0, 0));
  EXPECT_TRUE(says(100, SpeechGuard::kShortStart, 0));
  EXPECT_FALSE(says(100, SpeechGuard::kShortStart + 1, 0));
  EXPECT_TRUE(says(10, 5, 0));
  EXPECT_FALSE(says(10, 6, 0));  // a word may have been said
  EXPECT_TRUE(says(2, 1, 0));
  EXPECT_FALSE(says(2, 2, 0));
  EXPECT_TRUE(says(100, 0, 1));
  EXPECT_TRUE(says(100, 0, 20));
  EXPECT_FALSE(says(100, 30, 5));
}

TEST(SpeechGuard, LimitIsThriceTheExpectedLength) {
  EXPECT_EQ(SpeechGuard::expected_frames(10), 48u);
  EXPECT_EQ(SpeechGuard::limit(10, std::nullopt, 12.5), 145u);
  EXPECT_EQ(SpeechGuard::limit(10, 2.0, 12.5), 25u);
  EXPECT_EQ(SpeechGuard::limit(10, 0.01, 12.5), 1u);
}

TEST(SpeechGuard, NotingAllocatesNothing) {
  SpeechGuard guard;
  Speech speech(1);
  std::vector<Scripted> frames;
  for (size_t i = 0; i < 100; ++i) frames.push_back(speech.next());
  const std::vector<float> samples(kSamples, kLoud);
  guard.begin(kCodebooks, 100);
  const size_t before = allocation_count();
  for (const Scripted& frame : frames)
    guard.note({.codes = frame.codes, .end_probability = frame.end_probability, .samples = samples});
  guard.begin(kCodebooks, 100);
  EXPECT_EQ(allocation_count(), before);
}

}  // namespace
}  // namespace syrinx::qwen_tts
