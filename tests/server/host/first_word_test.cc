// How long the first words of live sound took, by a clock that the test sets.
#include "server/host/first_word.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"
#include "server/host/metrics.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kHalf = 500'000'000;
constexpr size_t kHalfSamples = kRecognitionRateHz / 2;

class FirstWordTest : public testing::Test {
 protected:
  void observed(int count, const std::string& sum) {
    const std::string text = metrics_.text();
    EXPECT_THAT(text,
                HasSubstr("syrinx_time_to_first_word_seconds_count{model=\"m\"} " + std::to_string(count) + "\n"));
    EXPECT_THAT(text, HasSubstr("syrinx_time_to_first_word_seconds_sum{model=\"m\"} " + sum + "\n"));
  }
  // Halves of a second, each when it has been said.
  void speak(int halves) {
    for (int i = 0; i < halves; ++i) {
      clock_.advance_ns(kHalf);
      word_.hear(kHalfSamples, clock_.now_ns());
    }
  }

  Metrics metrics_;
  ManualClock clock_;
  FirstWord word_{"m", {.metrics = metrics_}, clock_};
};

TEST_F(FirstWordTest, CountFromWhereTheyBegan) {
  speak(20);
  word_.tell(9.5);
  observed(1, "0.5");
  word_.tell(10);
  observed(1, "0.5");
  word_.begin_turn();
  word_.begin_stream();
  speak(2);
  clock_.advance_ns(4 * kHalf);
  word_.hear(0, clock_.now_ns());  // the end, which is no sound
  word_.tell(0.5);
  observed(2, "3");
}

// Before it came nobody could know of it.
TEST_F(FirstWordTest, SoundThatComesAtOnceBeganWhenItCame) {
  clock_.advance_ns(10 * kHalf);
  word_.hear(16 * kHalfSamples, clock_.now_ns());
  clock_.advance_ns(3 * kHalf);
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("first_word")));
  word_.tell(1);
  observed(1, "1.5");
}

// A recogniser may think that they begin in what is still to come.
TEST_F(FirstWordTest, AreNeverBeforeTheirTime) {
  speak(1);
  word_.tell(7);
  observed(1, "0");
}

}  // namespace
}  // namespace syrinx::server
