// Admission by loads that the test makes up, on a clock that stands still unless it is advanced.
#include "server/host/live_admission.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <vector>

namespace syrinx::server {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

class LiveAdmissionTest : public testing::Test {
 protected:
  using Lease = SlotPool::Lease;

  // An engine whose streams need that share of the team each.
  void add(SlotPool& slots, double each) {
    StreamCost cost;
    cost.calibrate(each, 1);
    admission_->add(
        slots, [this, &slots] { return &slots == &speech_ ? spoken_ : heard_; }, cost);
  }
  void begin(double limit, double speech, double recognition) {
    admission_.emplace(limit, clock_);
    add(speech_, speech);
    add(recognition_, recognition);
  }
  std::optional<LiveAdmission::Refusal> take(SlotPool& slots) {
    return admission_->admit(slots, [&] {
      if (auto taken = slots.try_take()) streams_.push_back(std::move(*taken));
      return true;
    });
  }
  // How many more are admitted, one after another.
  size_t fill(SlotPool& slots) {
    const size_t before = streams_.size();
    while (streams_.size() < before + 20 && !take(slots)) {
    }
    return streams_.size() - before;
  }
  // The first stream makes so much, at the cost that each has.
  void make(double seconds, double each) {
    streams_.front().watch().note_audio(seconds);
    spoken_.took_ns += static_cast<int64_t>(seconds * each * 1e9);
  }
  void pass(double seconds) { clock_.advance_ns(static_cast<int64_t>(seconds * 1e9)); }

  ManualClock clock_;
  SlotPool speech_{64, clock_}, recognition_{64, clock_};
  StepFigures spoken_, heard_;
  std::optional<LiveAdmission> admission_;
  std::vector<Lease> streams_;
};

TEST_F(LiveAdmissionTest, StreamsAreAdmittedUpToTheLimit) {
  begin(0.85, 0.1, 0.2);
  EXPECT_EQ(fill(speech_), 8u);
  const auto refused = take(speech_);
  ASSERT_TRUE(refused);
  EXPECT_NEAR(refused->load, 0.9, 1e-9);
  EXPECT_EQ(refused->streams, 8u);
  streams_.pop_back();
  EXPECT_FALSE(take(speech_));
  EXPECT_NEAR(admission_->figures(speech_).load, 0.8, 1e-9);
  EXPECT_EQ(admission_->figures(speech_).admitted, 9u);
}

TEST_F(LiveAdmissionTest, SpeechAndRecognitionShareTheLimit) {
  begin(0.85, 0.1, 0.2);
  EXPECT_EQ(fill(recognition_), 4u);
  EXPECT_TRUE(take(speech_));
  streams_.pop_back();
  EXPECT_EQ(fill(speech_), 2u);
  EXPECT_FALSE(admission_->has_room(recognition_));
}

// While speech is refused, recognition gets half at most, and a while later all again.
TEST_F(LiveAdmissionTest, RefusedEngineIsLeftHalf) {
  begin(0.85, 0.1, 0.2);
  EXPECT_EQ(fill(recognition_), 4u);
  EXPECT_TRUE(take(speech_));
  streams_.clear();
  EXPECT_EQ(fill(recognition_), 2u);
  EXPECT_EQ(fill(speech_), 4u);
  pass(11);
  streams_.clear();
  EXPECT_EQ(fill(recognition_), 4u);
}

// A stream of recognition needs more than half of the limit: speech leaves it that, and it leaves speech half.
TEST_F(LiveAdmissionTest, LargeStreamsAreNotShutOut) {
  begin(0.85, 0.1, 0.6);
  EXPECT_EQ(fill(speech_), 8u);
  EXPECT_TRUE(take(recognition_));
  streams_.clear();
  EXPECT_EQ(fill(speech_), 2u);
  EXPECT_FALSE(take(recognition_));
  EXPECT_EQ(fill(speech_), 0u);
  streams_.clear();
  EXPECT_FALSE(take(recognition_));
  EXPECT_EQ(fill(speech_), 2u) << "one is refused, and so recognition again has room for its first stream alone";
  EXPECT_TRUE(take(recognition_));
}

TEST_F(LiveAdmissionTest, FirstStreamIsAlwaysAdmitted) {
  begin(0.01, 3, 3);
  EXPECT_EQ(fill(speech_), 1u);
  EXPECT_TRUE(take(recognition_));
  streams_.clear();
  EXPECT_FALSE(take(recognition_));
}

TEST_F(LiveAdmissionTest, ZeroLimitAdmitsAll) {
  begin(0, 3, 3);
  EXPECT_EQ(fill(speech_), 20u);
}

// By steps that were noted since: they cost less than the warm-up said.
TEST_F(LiveAdmissionTest, MeasuredStepsMoveTheLimit) {
  begin(0.85, 0.4, 0.2);
  EXPECT_EQ(fill(speech_), 2u);
  for (int i = 0; i < 60; ++i) {
    spoken_.took_ns += kSecondNs / 2;
    streams_.front().watch().note_audio(5);
    static_cast<void>(admission_->figures(speech_));
  }
  EXPECT_EQ(fill(speech_), 6u);
}

// It has made 40 s of audio in half a second, and its client has taken none for 16: it needs nothing.
TEST_F(LiveAdmissionTest, StalledStreamsAreNotCounted) {
  begin(0.85, 0.4, 0.2);
  EXPECT_EQ(fill(speech_), 2u);
  make(20, 0.4);
  pass(0.5);
  make(20, 0.4);
  EXPECT_TRUE(take(speech_));
  pass(14);
  EXPECT_TRUE(take(speech_));
  pass(2);
  EXPECT_FALSE(take(speech_));
  make(0.08, 0.4);  // it goes on
  EXPECT_NEAR(admission_->figures(speech_).load, 1.2, 1e-6);
}

// A piece of 11 s is made at once and played until the next one; other clients read in blocks of 2 s.
TEST_F(LiveAdmissionTest, StreamsWithLongPiecesCount) {
  for (const double piece : {11.0, 2.0}) {
    streams_.clear();
    begin(0.85, 0.4, 0.2);
    EXPECT_EQ(fill(speech_), 2u);
    make(4, 0.4);
    for (int i = 0; i < 3; ++i) {
      make(piece, 0.4);
      for (int part = 0; part < 10; ++part) {
        pass(piece / 10);
        EXPECT_TRUE(take(speech_)) << piece << ", " << part;
      }
    }
  }
}

// The scheduler treats both as batch work: neither they nor their audio say anything of streams.
TEST_F(LiveAdmissionTest, WholeAndBatchWorkAreNoStreams) {
  ASSERT_TRUE(speech_.start());
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  for (const auto work : {SlotPool::Work::kWhole, SlotPool::Work::kBatch}) {
    const auto noted = std::make_shared<std::promise<void>>();  // the job may outlive the test's body
    EXPECT_TRUE(speech_.try_start(
        [noted, gone](SlotWatch& watch) {
          watch.note_audio(100);
          noted->set_value();
          gone.wait();
        },
        [] {}, work));
    noted->get_future().wait();
  }
  EXPECT_EQ(speech_.audio_s(), 0);
  EXPECT_EQ(speech_.live().streams, 0u);
  begin(0.85, 0.4, 0.2);
  EXPECT_EQ(fill(speech_), 2u);
  go.set_value();
}

// Nor does the owner of a slot inherit what another one has made by it.
TEST_F(LiveAdmissionTest, NewOwnersBeginAtNothing) {
  begin(0.85, 0.4, 0.2);
  EXPECT_EQ(fill(speech_), 2u);
  make(60, 0.4);
  pass(16);
  streams_.clear();
  EXPECT_EQ(fill(speech_), 2u);
  pass(16);
  EXPECT_TRUE(take(speech_));
}

TEST_F(LiveAdmissionTest, LateStepsRefuse) {
  begin(0.85, 0.1, 0.2);
  const auto run = [&](uint64_t late) {
    for (int i = 0; i < 12; ++i) {
      pass(0.25);
      spoken_.buckets[3] += 10;
      spoken_.late += late;
      static_cast<void>(admission_->figures(speech_));
    }
  };
  EXPECT_FALSE(take(speech_));
  run(1);
  EXPECT_FALSE(take(speech_)) << "what is late at a tenth of the machine is not for want of room";
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(take(speech_));
  run(0);
  EXPECT_FALSE(take(speech_));
  run(1);
  EXPECT_TRUE(take(speech_));
  run(0);
  EXPECT_FALSE(take(speech_));
}

// The scheduler keeps a sixteenth for it.
TEST_F(LiveAdmissionTest, BatchWorkKeepsItsShare) {
  begin(0.85, 0.1, 0.2);
  EXPECT_EQ(fill(speech_), 8u);
  streams_.pop_back();
  static_cast<void>(admission_->figures(speech_));
  pass(1);
  heard_.other_ns += kSecondNs;
  const auto refused = take(speech_);
  ASSERT_TRUE(refused);
  EXPECT_NEAR(refused->load, 0.8 + 1.0 / 16, 1e-9);
}

// So long until one of them ends, each of which has lasted 12 s before.
TEST_F(LiveAdmissionTest, WaitIsUntilOneEnds) {
  begin(0.85, 0.4, 0.2);
  EXPECT_EQ(fill(speech_), 2u);
  pass(4);
  auto refused = take(speech_);
  ASSERT_TRUE(refused);
  EXPECT_NEAR(refused->wait_s, 4, 1e-9) << "of two that began 4 s ago, as long as twice their age";
  pass(8);
  streams_.clear();
  EXPECT_EQ(fill(speech_), 2u);
  refused = take(speech_);
  ASSERT_TRUE(refused);
  EXPECT_NEAR(refused->wait_s, 6, 1e-9);
  pass(1000);
  streams_.clear();
  EXPECT_EQ(fill(speech_), 2u);
  pass(1000);
  streams_.clear();
  EXPECT_EQ(fill(speech_), 2u);
  EXPECT_EQ(take(speech_)->wait_s, LiveAdmission::kLongestWaitS);
}

}  // namespace
}  // namespace syrinx::server
