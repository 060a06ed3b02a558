// When a piece of text must end though its model does not say so (spec qwen3-tts.md, section 4, "EOS robustness"):
// about one generation in some hundreds never does.  A piece ends
//   - at a limit of frames, kFramesPerToken for each token of its text and kSpareFrames, or what the user allows; slow
//     speech takes a quarter of that;
//   - after kQuietFrames of near silence, in which such generations stay: the model's pauses are shorter;
//   - after kSameFrames of the same codes.
// Pure; one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace syrinx::qwen_tts {

class SpeechGuard {
 public:
  static constexpr size_t kFramesPerToken = 12, kSpareFrames = 25;
  static constexpr size_t kQuietFrames = 75, kSameFrames = 25;  // of 80 ms
  static constexpr float kQuiet = 1e-3f;                        // root mean square, -60 dB of full scale

  // Frames that a piece of so many tokens may have, at least 1.
  static size_t limit(size_t tokens, std::optional<double> max_seconds, double frames_per_second) {
    const size_t usual = kSpareFrames + kFramesPerToken * tokens;
    if (!max_seconds) return usual;
    return std::max<size_t>(static_cast<size_t>(std::floor(*max_seconds * frames_per_second + 1e-9)), 1);
  }

  // A piece begins.
  void begin(size_t frames) {
    left_ = frames;
    quiet_ = same_ = 0;
    codes_.clear();
  }
  void note_codes(std::span<const int32_t> codes) {
    same_ = std::equal(codes.begin(), codes.end(), codes_.begin(), codes_.end()) ? same_ + 1 : 1;
    codes_.assign(codes.begin(), codes.end());
    left_ -= std::min<size_t>(left_, 1);
  }
  // Samples of one frame.
  void note_sound(std::span<const float> samples) {
    double sum = 0;
    for (const float sample : samples) sum += static_cast<double>(sample) * sample;
    quiet_ = sum < static_cast<double>(kQuiet) * kQuiet * static_cast<double>(samples.size()) ? quiet_ + 1 : 0;
  }
  bool must_end() const { return left_ == 0 || same_ >= kSameFrames; }
  bool is_quiet() const { return quiet_ >= kQuietFrames; }

 private:
  size_t left_ = 0, quiet_ = 0, same_ = 0;
  std::vector<int32_t> codes_;  // of the frame before
};

}  // namespace syrinx::qwen_tts
