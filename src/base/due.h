// When work that waits for its turn is due: nanoseconds of system_clock() (base/clock.h).
#pragma once

#include <cstdint>
#include <limits>

namespace syrinx {

inline constexpr int64_t kDueAtOnce = 0;                                   // before all that has a time
inline constexpr int64_t kNeverDue = std::numeric_limits<int64_t>::max();  // batch work

// Whether what was due then has come too late when it is there now.
constexpr bool is_late(int64_t due_ns, int64_t now_ns) { return due_ns > kDueAtOnce && due_ns < now_ns; }

// The deadline of audio that was asked for then: its listener hears a gap if it comes later.  There is none for audio
// that was due before it was asked for: mostly the first audio of a text, which is due when the text came
// (engine/speech/speech_session.h) and leaves no gap; else audio asked for after a gap began, which no step can mend.
constexpr int64_t gapless_until_ns(int64_t due_ns, int64_t asked_ns) { return due_ns > asked_ns ? due_ns : kNeverDue; }

}  // namespace syrinx
