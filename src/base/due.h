// When work that waits for its turn is due: nanoseconds of system_clock() (base/clock.h).
#pragma once

#include <cstdint>
#include <limits>

namespace syrinx {

inline constexpr int64_t kDueAtOnce = 0;                                   // before all that has a time
inline constexpr int64_t kNeverDue = std::numeric_limits<int64_t>::max();  // batch work: nobody listens meanwhile

}  // namespace syrinx
