// When work that waits for its turn is due: nanoseconds of system_clock() (base/clock.h).
#pragma once

#include <cstdint>
#include <limits>

namespace syrinx {

inline constexpr int64_t kDueAtOnce = 0;                                   // before all that has a time
inline constexpr int64_t kNeverDue = std::numeric_limits<int64_t>::max();  // batch work: nobody listens meanwhile

// Whether what was due then has come too late when it is there now.
constexpr bool is_late(int64_t due_ns, int64_t now_ns) { return due_ns > kDueAtOnce && due_ns < now_ns; }

// By when sound must be there that was asked for then, lest its listener hear a gap.  What is due before that is not
// counted: mostly the first sound of a text, which is due when the text came (engine/speech/speech_session.h), where he
// waits and misses nothing; else what was asked for behind the gap's beginning, which a step cannot mend.
constexpr int64_t gapless_until_ns(int64_t due_ns, int64_t asked_ns) { return due_ns > asked_ns ? due_ns : kNeverDue; }

}  // namespace syrinx
