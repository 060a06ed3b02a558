// How many positions of a newcomer's prompt go into a step that makes frames for others: so many that the step is not
// longer than a frame is heard, that nobody who is ahead falls behind, and always a few, so that the prompt comes to
// its end.  Pure: times come from the caller; one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/due.h"

namespace syrinx::qwen_tts {

class PromptShare {
 public:
  static constexpr int64_t kFrameNs = 80'000'000;
  // However late the others are: so long at least, and such a part of the time of their step.
  static constexpr int64_t kLeastNs = kFrameNs / 10, kLeastPart = 8;
  static constexpr size_t kLeastRows = 8;   // and so many positions: 400 take 50 steps
  static constexpr size_t kFirstRows = 16;  // until it is known what one takes

  // The others of a step.
  struct Others {
    size_t streams = 0;          // that make a frame
    size_t decoded = 0;          // frames whose sound is made behind it
    int64_t due_ns = kNeverDue;  // of the first of them
  };

  // While streams speak; `others` are those of them that have asked for this step.
  size_t rows(const Others& others, int64_t now_ns) const {
    if (row_ns_ == 0) return kFirstRows;
    int64_t room_ns = kFrameNs / 2, least_ns = kLeastNs;  // others may ask at any moment
    if (others.streams > 0) {
      const int64_t expected_ns = step_ns_ + static_cast<int64_t>(others.decoded) * decode_ns_;
      room_ns = kFrameNs - expected_ns;
      least_ns = std::max(least_ns, expected_ns / kLeastPart);
      if (others.due_ns != kNeverDue) room_ns = std::min(room_ns, others.due_ns - now_ns - expected_ns);
    }
    return std::max(static_cast<size_t>(std::max(room_ns, least_ns) / row_ns_), kLeastRows);
  }

  // Steps that have been made for live streams, without the time in which others had the team.
  void note_step(int64_t took_ns) { note(step_ns_, took_ns); }
  void note_decode(size_t frames, int64_t took_ns) { note(decode_ns_, took_ns / static_cast<int64_t>(frames)); }
  // With `rows` positions of a prompt, beside frames of so many streams, the first one of the prompt's own among them.
  void note_slice(size_t rows, size_t streams, int64_t took_ns) {
    note(row_ns_, (took_ns - (streams > 0 ? step_ns_ : 0)) / static_cast<int64_t>(rows));
  }

  int64_t step_ns() const { return step_ns_; }

 private:
  static constexpr int64_t kShortest = 1000;  // ns: no estimate is stuck below it

  // One odd measurement moves an estimate by a quarter of itself at most.
  static void note(int64_t& estimate_ns, int64_t measured_ns) {
    if (estimate_ns != 0)
      measured_ns = estimate_ns + (std::clamp<int64_t>(measured_ns, 0, 2 * estimate_ns) - estimate_ns) / 4;
    if (measured_ns > 0) estimate_ns = std::max(measured_ns, kShortest);
  }

  int64_t step_ns_ = 0, decode_ns_ = 0, row_ns_ = 0;  // 0: not measured
};

}  // namespace syrinx::qwen_tts
