#include "engine/families/pocket_tts/stream_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/models/pocket_tts/loaded.h"

namespace syrinx::pocket {
namespace {

constexpr size_t kFrames = 6;

std::vector<int32_t> text_of(size_t stream) {
  return std::vector<int32_t>(stream % 5 + 1, static_cast<int32_t>(stream));
}

std::vector<float> say(StreamPool::Lease& lease, const std::shared_ptr<const FlowLmState>& voice,
                       std::span<const int32_t> ids) {
  std::vector<float> sound(kFrames * lease.frame_samples());
  const std::vector<float> noise(lease.latent(), 0.25f);
  EXPECT_TRUE(lease.begin(voice, ids, 1e30f, 3).has_value());
  for (size_t i = 0; i < kFrames; ++i)
    EXPECT_TRUE(lease.next(noise, std::span(sound).subspan(i * lease.frame_samples(), lease.frame_samples())));
  return sound;
}

// Eight threads, each with several chunks in a stream of its own, while another works on the team now and then.
void expect_each_alone(Precision precision) {
  SCOPED_TRACE(precision_name(precision));
  const Loaded loaded("english_7m", precision);
  constexpr size_t kStreams = 8;
  for (const int threads : {1, 2}) {
    ThreadTeam team(threads);
    nn::Runner runner(team);
    const auto voice = loaded.voice(runner);
    ChunkSpeaker alone = loaded.speaker(runner);
    std::vector<std::vector<float>> want;
    for (size_t n = 0; n < kStreams; ++n) want.push_back(frames_of(alone, voice, text_of(n), kFrames));

    const FlowSchedule schedule = *make_schedule(*loaded.flow, loaded.model.evaluations);
    Scheduler scheduler;
    StepQueue queue(scheduler);
    StreamPool pool(loaded.flow, loaded.codec, schedule, runner, queue, kStreams);
    std::atomic<size_t> equal{0};
    std::vector<std::thread> speakers;
    for (size_t n = 0; n < kStreams; ++n) {
      speakers.emplace_back([&, n] {
        auto lease = pool.lease(schedule);
        if (!lease) return;
        for (size_t chunk = 0; chunk < 3; ++chunk) {
          const size_t text = (n + chunk) % kStreams;
          if (say(*lease, voice, text_of(text)) == want[text]) ++equal;
        }
      });
    }
    // The team aborts the process if somebody else runs on it at the same time.
    std::atomic<int> visits{0};
    for (int i = 0; i < 10; ++i) pool.alone([&] { team.run([&](int) { ++visits; }); });
    for (std::thread& speaker : speakers) speaker.join();
    EXPECT_EQ(equal, 3 * kStreams) << threads << " threads";
    EXPECT_EQ(visits, 10 * threads);
  }
}

TEST(StreamPool, ThreadsTogetherGetWhatEachGetsAlone) {
  for (const Precision precision : kBothHistories) expect_each_alone(precision);
}

// The smallest model on one thread, with room for two streams.  Its clock stands still unless a test moves it.
class StreamPoolOfTwo : public ::testing::Test {
 protected:
  const Loaded loaded_{"english_2m"};
  ThreadTeam team_{1};
  nn::Runner runner_{team_};
  const std::shared_ptr<const FlowLmState> voice_ = loaded_.voice(runner_);
  const FlowSchedule schedule_ = *make_schedule(*loaded_.flow, loaded_.model.evaluations);
  ManualClock clock_;
  Scheduler scheduler_{clock_};
  StepQueue queue_{scheduler_};
  StreamPool pool_{loaded_.flow, loaded_.codec, schedule_, runner_, queue_, 2};
  const std::vector<int32_t> ids_ = {5, 6};
};

// One caller's failure is its own, also when another's thread did the work, and the pool goes on.
TEST_F(StreamPoolOfTwo, WhatWorkThrowsReachesItsOwner) {
  std::atomic<int> caught{0};
  std::thread thrower([&] {
    for (int i = 0; i < 50; ++i) {
      try {
        pool_.alone([] { throw std::bad_alloc(); });
      } catch (const std::bad_alloc&) {
        ++caught;
      }
    }
  });
  auto lease = pool_.lease(schedule_);
  ASSERT_TRUE(lease.has_value());
  const std::vector<float> sound = say(*lease, voice_, ids_);
  thrower.join();
  EXPECT_EQ(caught, 50);
  EXPECT_EQ(say(*lease, voice_, ids_), sound);
}

// What is asked for while the team is busy, in this order.
class Askers {
 public:
  explicit Askers(StreamPool& pool) : pool_(pool) {}
  ~Askers() {
    for (std::thread& thread : threads_) thread.join();
  }
  // From the work that keeps the team.
  void ask(std::function<void()> body) {
    threads_.emplace_back(std::move(body));
    while (pool_.waiting() < threads_.size()) std::this_thread::yield();
  }

 private:
  StreamPool& pool_;
  std::vector<std::thread> threads_;
};

// The time in which the team works for others is not a stream's own.
TEST_F(StreamPoolOfTwo, TimeOfOthersIsWaitingTime) {
  auto lease = pool_.lease(schedule_);
  ASSERT_TRUE(lease.has_value());
  say(*lease, voice_, ids_);
  EXPECT_EQ(lease->waited_ms(), 0);
  {
    Askers askers(pool_);
    pool_.alone([&] {
      askers.ask([&] { say(*lease, voice_, ids_); });
      clock_.advance_ns(200'000'000);
    });
  }
  EXPECT_EQ(lease->waited_ms(), 200);
}

// A text beside another stream is read in parts, between which other work of the same time has the team.
TEST_F(StreamPoolOfTwo, WaitsWithinATextCount) {
  auto lease = pool_.lease(), other = pool_.lease();
  ASSERT_TRUE(lease.has_value() && other.has_value());
  std::vector<int32_t> text;
  while (text.size() < 3 * FlowLm::kRowsOfJob) text.insert(text.end(), ids_.begin(), ids_.end());
  {
    Askers askers(pool_);
    pool_.alone([&] {
      askers.ask([&] { EXPECT_TRUE(lease->begin(voice_, text, 1e30f, 3).has_value()); });
      askers.ask([&] { pool_.alone([&] { clock_.advance_ns(50'000'000); }, kDueAtOnce); });
      clock_.advance_ns(200'000'000);
    });
  }
  EXPECT_EQ(lease->waited_ms(), 250);
}

// Other work of the pool, frames and batch work go in the order in which they are due.
TEST_F(StreamPoolOfTwo, EarliestDueGoesFirst) {
  auto lease = pool_.lease(schedule_);
  ASSERT_TRUE(lease.has_value());
  ASSERT_TRUE(lease->begin(voice_, ids_, 1e30f, 3).has_value());
  const std::vector<float> noise(lease->latent(), 0.25f);
  for (const int64_t due_ns : {150, 250}) {
    std::vector<float> frame(lease->frame_samples(), std::numeric_limits<float>::quiet_NaN());
    std::vector<std::string> order;  // of the team's turns
    const auto note = [&](const std::string& name) {
      order.push_back(std::isnan(frame[0]) ? name : name + ", spoken");
    };
    {
      Askers askers(pool_);
      pool_.alone([&] {
        askers.ask([&] { pool_.alone([&] { note("batch"); }); });
        askers.ask([&] { pool_.alone([&] { note("later"); }, 300); });
        askers.ask([&] { EXPECT_TRUE(lease->next(noise, frame, due_ns)); });
        askers.ask([&] { pool_.alone([&] { note("sooner"); }, 200); });
      });
    }
    EXPECT_EQ(order[0], due_ns < 200 ? "sooner, spoken" : "sooner");
    EXPECT_EQ(order[1], "later, spoken");
    EXPECT_EQ(order[2], "batch, spoken");
  }
}

// A round is as urgent as the frame of it that is due first, whenever that was asked for.
TEST_F(StreamPoolOfTwo, UrgentFrameHastensTheRound) {
  auto slow = pool_.lease(), urgent = pool_.lease();
  ASSERT_TRUE(slow.has_value() && urgent.has_value());
  for (auto* const lease : {&*slow, &*urgent}) ASSERT_TRUE(lease->begin(voice_, ids_, 1e30f, 3).has_value());
  const std::vector<float> noise(slow->latent(), 0.25f);
  const uint64_t steps = pool_.steps().count();
  std::vector<float> first(slow->frame_samples(), std::numeric_limits<float>::quiet_NaN()), second = first;
  bool was_spoken = false;
  {
    Askers askers(pool_);
    pool_.alone([&] {
      askers.ask([&] { EXPECT_TRUE(slow->next(noise, first, 300)); });
      askers.ask([&] { pool_.alone([&] { was_spoken = !std::isnan(first[0]) && !std::isnan(second[0]); }, 200); });
      askers.ask([&] { EXPECT_TRUE(urgent->next(noise, second, 100)); });
    });
  }
  EXPECT_TRUE(was_spoken);
  EXPECT_EQ(pool_.steps().count(), steps + 2);
}

// Frames without a listener are no part of a round that is due, and keep the share of batch work.
TEST_F(StreamPoolOfTwo, BatchFramesHaveOwnRounds) {
  auto live = pool_.lease(), batch = pool_.lease();
  ASSERT_TRUE(live.has_value() && batch.has_value());
  for (auto* const lease : {&*live, &*batch}) ASSERT_TRUE(lease->begin(voice_, ids_, 1e30f, 3).has_value());
  const std::vector<float> noise(live->latent(), 0.25f);
  std::vector<float> frame(live->frame_samples(), std::numeric_limits<float>::quiet_NaN()), whole = frame;
  const StepFigures before = pool_.steps();
  bool was_live = false, was_whole = true;
  {
    Askers askers(pool_);
    pool_.alone([&] {
      askers.ask([&] { EXPECT_TRUE(batch->next(noise, whole, kNeverDue)); });
      askers.ask([&] { EXPECT_TRUE(live->next(noise, frame, 100)); });
      askers.ask([&] {
        pool_.alone(
            [&] {
              was_live = !std::isnan(frame[0]);
              was_whole = !std::isnan(whole[0]);
            },
            200);
      });
    });
  }
  EXPECT_TRUE(was_live);
  EXPECT_FALSE(was_whole);
  EXPECT_FALSE(std::isnan(whole[0]));
  EXPECT_EQ(pool_.steps().since(before).rounds.members, 1);
}

// Whether he waits for a chunk or for a frame: no round makes anything for him.
TEST_F(StreamPoolOfTwo, NothingIsMadeForWhoHasLeft) {
  auto lease = pool_.lease(schedule_), stays = pool_.lease(schedule_);
  ASSERT_TRUE(lease.has_value() && stays.has_value());
  std::atomic<bool> wanted{true};
  lease->ask_first([&] { return wanted.load(); });
  ASSERT_TRUE(lease->begin(voice_, ids_, 1e30f, 3).has_value());
  ASSERT_TRUE(stays->begin(voice_, ids_, 1e30f, 3).has_value());
  const std::vector<float> noise(lease->latent(), 0.25f);
  for (const bool begins : {false, true}) {
    wanted = true;
    std::vector<float> frame(lease->frame_samples(), std::numeric_limits<float>::quiet_NaN()), other = frame;
    const uint64_t steps = pool_.steps().count();
    {
      Askers askers(pool_);
      pool_.alone([&] {
        askers.ask([&] {
          if (begins) {
            const Result<bool> begun = lease->begin(voice_, ids_, 1e30f, 3, 0, noise, frame);
            ASSERT_FALSE(begun.has_value());
            EXPECT_EQ(begun.error().code, Code::kCancelled);
          } else {
            EXPECT_FALSE(lease->next(noise, frame));
          }
        });
        askers.ask([&] { EXPECT_TRUE(stays->next(noise, other)); });
        wanted = false;
      });
    }
    EXPECT_TRUE(std::isnan(frame[0])) << begins;
    EXPECT_FALSE(std::isnan(other[0])) << begins;
    EXPECT_EQ(pool_.steps().count(), steps + 1) << begins;  // the other one's
    EXPECT_EQ(pool_.waiting(), 0u);
    if (begins) {  // nobody is before him
      EXPECT_EQ(lease->begin(voice_, ids_, 1e30f, 3).error().code, Code::kCancelled);
    } else {
      EXPECT_FALSE(lease->next(noise, frame));
    }
    EXPECT_EQ(pool_.steps().count(), steps + 1) << begins;
  }
}

// Work that is due leaves batch work its share.
TEST_F(StreamPoolOfTwo, BatchWorkKeepsItsShare) {
  std::vector<std::string> order;
  const auto work = [&](const char* name) {
    order.emplace_back(name);
    clock_.advance_ns(DueQueue::kStepNs);
  };
  {
    Askers askers(pool_);
    pool_.alone([&] {
      askers.ask([&] { pool_.alone([&] { work("batch"); }); });
      for (int i = 0; i < 18; ++i) askers.ask([&, i] { pool_.alone([&] { work("due"); }, 1000 + i); });
    });
  }
  std::vector<std::string> expected(19, "due");
  expected[16] = "batch";
  EXPECT_EQ(order, expected);
}

TEST_F(StreamPoolOfTwo, BatchWorkGoesOnWhereAStreamDoesNot) {
  auto lease = pool_.lease(schedule_);
  ASSERT_TRUE(lease.has_value());
  say(*lease, voice_, ids_);
  bool done = false;
  pool_.alone([&] { done = true; });
  EXPECT_TRUE(done);
}

// Whoever asks for a stream gets it while the team works, here even from its work.
TEST_F(StreamPoolOfTwo, AStreamIsThereAtOnce) {
  Result<StreamPool::Lease> lease = pool_.lease();
  ASSERT_TRUE(lease.has_value());
  const std::vector<float> sound = say(*lease, voice_, ids_);
  std::optional<Result<StreamPool::Lease>> other;
  pool_.alone([&] { other.emplace(pool_.lease()); });
  ASSERT_TRUE(other->has_value());
  EXPECT_EQ(say(**other, voice_, ids_), sound);
}

// A first sound waits for one round of the others: the one behind its chunk's beginning makes its frame beside theirs.
TEST_F(StreamPoolOfTwo, FirstFrameIsInTheNextRound) {
  auto lease = pool_.lease(), other = pool_.lease();
  ASSERT_TRUE(lease.has_value() && other.has_value());
  const std::vector<float> sound = say(*lease, voice_, ids_);
  ASSERT_TRUE(other->begin(voice_, ids_, 1e30f, 3).has_value());
  const std::vector<float> noise(lease->latent(), 0.25f);
  std::vector<float> first(lease->frame_samples()), others(first.size());
  const auto is_made = [](const std::vector<float>& frame) {
    return std::any_of(frame.begin(), frame.end(), [](float sample) { return sample != 0; });
  };
  std::vector<std::string> order;
  const uint64_t steps = pool_.steps().count();
  {
    Askers askers(pool_);
    pool_.alone([&] {
      askers.ask([&] { EXPECT_TRUE(other->next(noise, others, 200)); });
      askers.ask([&] {
        const Result<bool> spoken = lease->begin(voice_, ids_, 1e30f, 3, 100, noise, first);
        EXPECT_TRUE(spoken.has_value() && *spoken);
      });
      askers.ask([&] {
        pool_.alone(
            [&] {
              if (is_made(first)) order.emplace_back("first");
              if (is_made(others)) order.emplace_back("others");
            },
            300);
      });
    });
  }
  EXPECT_EQ(order, (std::vector<std::string>{"first", "others"}));
  EXPECT_EQ(pool_.steps().count() - steps, 3u) << "the chunk, one round of frames, and what came behind it";
  EXPECT_TRUE(std::equal(first.begin(), first.end(), sound.begin()));
  std::vector<float> second(first.size());
  EXPECT_TRUE(lease->next(noise, second));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), sound.begin() + static_cast<std::ptrdiff_t>(first.size())));
}

TEST_F(StreamPoolOfTwo, AChunkThatCannotBeginHasNoFirstFrame) {
  auto lease = pool_.lease();
  ASSERT_TRUE(lease.has_value());
  const std::vector<float> noise(lease->latent());
  std::vector<float> frame(lease->frame_samples(), 7.0f);
  const std::vector<int32_t> wrong = {5, 1 << 20};
  EXPECT_EQ(lease->begin(voice_, wrong, 1e30f, 3, kDueAtOnce, noise, frame).error().code, Code::kInvalidArgument);
  EXPECT_EQ(frame, std::vector<float>(frame.size(), 7.0f));
  EXPECT_FALSE(lease->end().goes_on());
}

// By a clock that the work moves: rounds are counted whole, and what has no time is no step.
TEST_F(StreamPoolOfTwo, RoundsAreSteps) {
  constexpr int64_t kMs = 1'000'000;
  ManualClock clock;
  clock.advance_ns(1000 * kMs);
  Scheduler scheduler(clock);
  StepQueue queue(scheduler);
  StreamPool pool(loaded_.flow, loaded_.codec, schedule_, runner_, queue, 2);
  const auto pass = [&] { clock.advance_ns(100 * kMs); };
  const auto in_ms = [&](int64_t ms) { return clock.now_ns() + ms * kMs; };
  auto lease = pool.lease(schedule_);
  ASSERT_TRUE(lease.has_value());
  ASSERT_TRUE(lease->begin(voice_, ids_, 1e30f, 3).has_value());
  EXPECT_EQ(pool.steps().count(), 1u);
  pool.alone(pass);
  pool.alone(pass, kDueAtOnce);
  EXPECT_EQ(pool.steps().count(), 1u);

  pool.alone(pass, in_ms(-50));  // the first sound of a text
  pool.alone(pass, in_ms(100));
  EXPECT_EQ(pool.steps().count(), 3u);
  EXPECT_EQ(pool.steps().late, 0u);
  pool.alone(pass, in_ms(99));
  EXPECT_EQ(pool.steps().late, 1u);

  const std::vector<float> noise(lease->latent(), 0.25f);
  std::vector<float> frame(lease->frame_samples());
  EXPECT_TRUE(lease->next(noise, frame, in_ms(0)));
  EXPECT_TRUE(lease->next(noise, frame, in_ms(1)));
  EXPECT_EQ(pool.steps().count(), 6u);
  EXPECT_EQ(pool.steps().late, 1u);
  {
    Askers askers(pool);
    pool.alone([&] {
      askers.ask([&, due_ns = in_ms(80)] { EXPECT_TRUE(lease->next(noise, frame, due_ns)); });
      askers.ask([&] { pool.alone(pass, in_ms(70)); });  // before the frame, which is late then
    });
  }
  const StepFigures steps = pool.steps();
  EXPECT_EQ(steps.count(), 8u);
  EXPECT_EQ(steps.late, 3u);
  EXPECT_EQ(steps.took_ns, 400 * kMs);
}

// Streams of one round may evaluate the head differently often.
TEST(StreamPool, SchedulesAreEachStreamsOwn) {
  const Loaded loaded("english");
  ThreadTeam team(2);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  const std::vector<int32_t> ids = {5, 6, 7};
  Scheduler scheduler;
  StepQueue queue(scheduler);
  StreamPool pool(loaded.flow, loaded.codec, *make_schedule(*loaded.flow, 1), runner, queue, 3);
  std::vector<std::vector<float>> want, got(3);
  for (const size_t evaluations : {1, 2, 3}) {
    ChunkSpeaker alone(loaded.flow, loaded.codec, *make_schedule(*loaded.flow, evaluations), runner);
    want.push_back(frames_of(alone, voice, ids, kFrames));
  }
  EXPECT_NE(want[0], want[1]);
  std::vector<std::thread> speakers;
  for (size_t n = 0; n < 3; ++n) {
    speakers.emplace_back([&, n] {
      auto lease = pool.lease(*make_schedule(*loaded.flow, n + 1));
      if (lease) got[n] = say(*lease, voice, ids);
    });
  }
  for (std::thread& speaker : speakers) speaker.join();
  EXPECT_EQ(got, want);
  // Streams that were given back have the pool's.
  std::vector<Result<StreamPool::Lease>> leases;
  for (size_t n = 0; n < 3; ++n) {
    auto& lease = leases.emplace_back(pool.lease());
    ASSERT_TRUE(lease.has_value());
    EXPECT_EQ(say(*lease, voice, ids), want[0]);
  }
}

TEST(StreamPool, EndsAndErrorsAreEachStreamsOwn) {
  const Loaded loaded("english"), other("english_7m");
  ThreadTeam team(1);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  const FlowSchedule schedule = *make_schedule(*loaded.flow, loaded.model.evaluations);
  Scheduler scheduler;
  StepQueue queue(scheduler);
  StreamPool pool(loaded.flow, loaded.codec, schedule, runner, queue, 2);
  auto first = pool.lease(schedule);
  ASSERT_TRUE(first.has_value());
  {
    const auto second = pool.lease(schedule);
    ASSERT_TRUE(second.has_value());
    const auto third = pool.lease(schedule);
    ASSERT_FALSE(third.has_value());
    EXPECT_EQ(third.error().code, Code::kUnavailable);
    EXPECT_EQ(third.error().message, "all 2 streams speak; ask again when one has ended");
  }
  auto again = pool.lease(schedule);
  ASSERT_TRUE(again.has_value()) << "a lease that ended gives its stream back";
  const std::vector<int32_t> ids = {5, 6};
  const std::vector<float> noise(first->latent());
  std::vector<float> frame(first->frame_samples());
  ASSERT_TRUE(first->begin(voice, ids, 1e30f, 3).has_value());
  EXPECT_EQ(again->begin(other.voice(runner), ids, 1e30f, 3).error().code, Code::kInvalidArgument);
  EXPECT_FALSE(again->next(noise, frame));
  EXPECT_TRUE(first->next(noise, frame));
  // A threshold below every logit: the first step that may end does, and nothing is spoken after it.
  ASSERT_TRUE(again->begin(voice, ids, -1e30f, 0).has_value());
  size_t frames = 0;
  while (again->next(noise, frame)) ++frames;
  EXPECT_EQ(frames, again->end().frames());
  EXPECT_EQ(again->end().end_step(), std::optional<size_t>(frames));
  EXPECT_TRUE(first->next(noise, frame));
}

}  // namespace
}  // namespace syrinx::pocket
