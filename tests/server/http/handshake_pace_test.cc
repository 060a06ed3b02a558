#include "server/http/handshake_pace.h"

#include <gtest/gtest.h>

#include <string>

namespace syrinx::server {
namespace {

using std::chrono::milliseconds;

using Pace = HandshakePace<std::string>;
constexpr const char* kOne = "192.0.2.1";
constexpr const char* kOther = "2001:db8::1";

TEST(HandshakePace, AsManyAsConnectionsAtOnceAndThenOneEachInterval) {
  Pace pace(4);  // one a second
  const Pace::Time now{};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(pace.next(kOne, now), now);
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(pace.next(kOne, now), now + milliseconds(1000 * i));
  EXPECT_EQ(pace.next(kOther, now), now);  // is not slowed by it
  const Pace::Time later = now + milliseconds(6500);
  EXPECT_EQ(pace.next(kOne, later), later);
  EXPECT_EQ(pace.next(kOne, later), later);
  EXPECT_EQ(pace.next(kOne, later), later + milliseconds(500));
}

TEST(HandshakePace, AddressesThatHaveRestedAreForgotten) {
  Pace pace(4);
  Pace::Time now{};
  for (uint32_t i = 0; i < 100000; ++i, now += milliseconds(10)) EXPECT_EQ(pace.next(std::to_string(i), now), now);
  EXPECT_LE(pace.addresses(), 1024U);
}

TEST(HandshakePace, ALimitOfNoneIsOne) {
  Pace pace(0);
  const Pace::Time now{};
  EXPECT_EQ(pace.next(kOne, now), now);
  EXPECT_EQ(pace.next(kOne, now), now + Pace::kRefill);
}

}  // namespace
}  // namespace syrinx::server
