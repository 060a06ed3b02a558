// When a piece of text must end though its model does not say so (spec qwen3-tts.md, section 4, "EOS robustness"): a
// few generations in a thousand stay in near silence, or repeat themselves, and hardly ever leave that state.
//
// A frame is suspect
//   - in near silence, from kFirstSuspect frames of it on: 60 dB below full scale, or 34 dB below the loudest stretch
//   of
//     the piece;
//   - where its first code repeats those of a period, 1 to kMostPeriod frames, from kFirstSuspect matches or one more
//     period on; one frame in five may differ, and quiet ones, which pauses have in common, count for neither.
// A stretch of suspect frames is held back: not heard before it is over.  The piece is cut there, and what is held
// dropped (a sound that is held before the silence of a cut is heard),
//   - when kMostHeld frames are held: so long a listener waits at most, and a pause may take 6 s;
//   - when kLeastHeld are, all for the silence or for the same period, if the piece is twice as long as expected and
//   the
//     end has been out of reach for as long; or if as many repeat in all of their codes.
// expected_frames() is what a text usually takes; limit() is three times that.
//
// The verdicts follow from the frames, in their order, alone.  Pure; one thread; note() allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/speech/finish_reason.h"

namespace syrinx::qwen_tts {

class SpeechGuard {
 public:
  static constexpr size_t kFirstSuspect = 12, kMostPeriod = 25;  // frames of 80 ms
  static constexpr size_t kLeastHeld = 25, kMostHeld = 64;
  static constexpr float kQuiet = 1e-3f;       // root mean square
  static constexpr float kQuietPart = 0.02f;   // of the loudest stretch
  static constexpr float kOutOfReach = 1e-6f;  // probability of the end; 1e-14 has been seen in such states
  static constexpr size_t kShortStart = 25;    // frames: spoken_little()

  // 0.32 s for each token of the text, and 0.64 s.
  static constexpr size_t expected_frames(size_t tokens) { return 8 + 4 * tokens; }
  // Frames that a piece may have, at least 1: three times the expected ones and one, or what the user allows.
  static size_t limit(size_t tokens, std::optional<double> max_seconds, double frames_per_second);

  struct Frame {
    std::span<const int32_t> codes = {};  // [codebooks]
    float end_probability = 0;            // FrameStream::end_probability()
    std::span<const float> samples = {};
  };

  // A piece begins.
  void begin(size_t codebooks, size_t expected_frames);
  // For a text that has grown since.
  void expect(size_t expected_frames);
  // Its next frame; none behind a cut.
  void note(const Frame& frame);

  // So many of the last frames are not to be heard, or, once the piece is cut, ever.
  size_t held() const { return held_; }
  // The piece ends here, for finish_reason(): kSilence or kRepeats.
  bool must_end() const { return cut_; }
  FinishReason finish_reason() const { return reason_; }
  // The text can be begun anew: up to kShortStart frames that may be heard, and half of the text's tokens, too few for
  // a word, were neither quiet nor repeated.
  bool spoken_little() const;

 private:
  bool is_quiet(std::span<const float> samples);
  void note_repeats(std::span<const int32_t> codes);
  bool is_suspect() const;
  bool is_lost() const;

  size_t codebooks_ = 0, expected_ = 0;
  size_t frames_ = 0;
  float loudest_ = 0, smoothed_ = 0;  // mean squares
  size_t quiet_ = 0;                  // frames up to the last
  std::vector<int32_t> codes_;        // of the last kMostPeriod frames, a ring [kMostPeriod, codebooks]
  // By period: matches of first codes less those that differ, suspect frames and matches of all codes up to the last.
  std::array<size_t, kMostPeriod + 1> firsts_ = {}, suspects_ = {}, wholes_ = {};
  size_t far_ = 0;  // frames up to the last at which the end was out of reach
  size_t held_ = 0;
  size_t spoken_ = 0;  // frames that may be heard, neither quiet nor repeated
  bool cut_ = false;
  FinishReason reason_ = FinishReason::kSpoken;
};

}  // namespace syrinx::qwen_tts
