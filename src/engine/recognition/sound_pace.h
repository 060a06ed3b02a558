// When the chunks of a stream that is heard live are due: a chunk's own length after the last of its sound has come, so
// that whoever keeps to that is done with each chunk when the next one is there.
//
// Sound that comes ahead of the pace of speech is due at that pace, as if it came then: who sends a recording at once
// takes no turn from those who speak.  What a network, or a detector of speech, holds back and then brings at once is
// not ahead: so much is credited.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace syrinx {

// One stream's; one thread.
class SoundPace {
 public:
  static constexpr double kCreditS = 2;

  // Due time of the next chunk of `chunk_s`, whose last sample came at `came_ns`.
  int64_t due_ns(int64_t came_ns, double chunk_s) { return due_ns(came_ns, chunk_s, chunk_s); }
  // The same of a chunk that may be shorter than what it is given to be done.
  int64_t due_ns(int64_t came_ns, double chunk_s, double given_s) {
    pace_ns_ = std::max(pace_ns_ + ns(chunk_s), came_ns - ns(kCreditS));
    return std::max(came_ns, pace_ns_) + ns(given_s);
  }

 private:
  static int64_t ns(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

  int64_t pace_ns_ = std::numeric_limits<int64_t>::min();  // when the last chunk would have come
};

}  // namespace syrinx
