// Metrics of audio that waits for a recogniser, by a clock that the test sets.
#include "server/host/waiting_sound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/host/metrics.h"

namespace syrinx::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSecond = 1'000'000'000;

// Waits for its turns by the test's clock.
class SlowStream final : public RecognitionStream {
 public:
  explicit SlowStream(ManualClock& clock) : clock_(clock) {}
  Status push(std::span<const float> /*samples*/, std::vector<RecognitionEvent>& /*events*/) override { return hear(); }
  Status finish(std::vector<RecognitionEvent>& /*events*/) override { return hear(); }
  Status commit(std::vector<RecognitionEvent>& /*events*/) override { return {}; }
  const std::string& language() const override { return language_; }

  int64_t turn_ns = 0;  // how long each call waits
  std::string fault;    // of each call
  std::vector<int64_t> came_ns;

 private:
  Status hear() {
    came_ns.push_back(take_arrival());
    clock_.advance_ns(turn_ns);
    if (!fault.empty()) return fail(Code::kInternal, "{}", fault);
    return {};
  }
  ManualClock& clock_;
  const std::string language_;
};

class WaitingSoundTest : public testing::Test {
 protected:
  void push(size_t samples, int64_t came_ns) {
    const std::vector<float> sound(samples);
    EXPECT_TRUE(sound_.push(stream_, sound, came_ns, events_));
  }
  void observed(int count, int sum) {
    const std::string text = metrics_.text();
    EXPECT_THAT(text, HasSubstr("syrinx_queue_delay_seconds_count{model=\"m\"} " + std::to_string(count) + "\n"));
    EXPECT_THAT(text, HasSubstr("syrinx_queue_delay_seconds_sum{model=\"m\"} " + std::to_string(sum) + "\n"));
  }

  Metrics metrics_;
  std::atomic<int64_t> all_{100};  // of other sessions
  ManualClock clock_;
  std::vector<RecognitionEvent> events_;
  SlowStream stream_{clock_};
  WaitingSound sound_{"m", {.metrics = metrics_, .waiting_samples = &all_}, clock_};
};

TEST_F(WaitingSoundTest, IsCountedWhileItWaits) {
  sound_.add(300);
  sound_.add(20);
  EXPECT_EQ(sound_.samples(), 320U);
  EXPECT_EQ(all_, 420);
  sound_.take_off(300);
  EXPECT_EQ(sound_.samples(), 20U);
  EXPECT_EQ(all_, 120);
  sound_.clear();
  EXPECT_EQ(all_, 100);
  {
    WaitingSound given_up("m", {.metrics = metrics_, .waiting_samples = &all_}, clock_);
    given_up.add(7);
    EXPECT_EQ(all_, 107);
  }
  EXPECT_EQ(all_, 100);
  WaitingSound uncounted("m", {.metrics = metrics_}, clock_);
  uncounted.add(7);
  EXPECT_EQ(uncounted.samples(), 7U);
}

// Most of it is waited in the stream, for its turn.
TEST_F(WaitingSoundTest, TheWaitForTheTurnIsPartOfIt) {
  clock_.advance_ns(5 * kSecond);
  stream_.turn_ns = 3 * kSecond;
  push(kRecognitionRateHz, 4 * kSecond);  // which waited a second for its predecessors
  observed(1, 4);
  stream_.turn_ns = 2 * kSecond;
  EXPECT_TRUE(sound_.finish(stream_, 8 * kSecond, events_));
  observed(2, 6);
  EXPECT_THAT(stream_.came_ns, ElementsAre(4 * kSecond, 8 * kSecond));
}

// In pieces of 32 ms as where voice activity is looked for, of which few wait.
TEST_F(WaitingSoundTest, ASecondIsObservedOnceWithItsLongestWait) {
  constexpr size_t kPiece = 512;
  for (size_t heard = 0; heard < 3 * size_t{kRecognitionRateHz}; heard += kPiece) {
    stream_.turn_ns = heard == 20 * kPiece ? 7 * kSecond : 0;
    push(kPiece, clock_.now_ns());
  }
  observed(2, 7);  // the third lacks some samples, as 32 pieces are more than a second
  EXPECT_TRUE(sound_.finish(stream_, clock_.now_ns(), events_));
  observed(3, 7);
}

TEST_F(WaitingSoundTest, FailedAudioIsNotMeasured) {
  stream_.fault = "the weights are gone";
  stream_.turn_ns = kSecond;
  const std::vector<float> sound(2 * size_t{kRecognitionRateHz});
  const Status pushed = sound_.push(stream_, sound, 0, events_);
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().message, "the weights are gone");
  EXPECT_FALSE(sound_.finish(stream_, 0, events_));
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("syrinx_queue_delay_seconds")));
}

}  // namespace
}  // namespace syrinx::server
