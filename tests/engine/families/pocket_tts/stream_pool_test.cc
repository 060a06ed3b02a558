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
    StreamPool pool(loaded.flow, loaded.codec, schedule, runner, kStreams);
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

// The smallest model on one thread, with room for two streams.
class StreamPoolOfTwo : public ::testing::Test {
 protected:
  const Loaded loaded_{"english_2m"};
  ThreadTeam team_{1};
  nn::Runner runner_{team_};
  const std::shared_ptr<const FlowLmState> voice_ = loaded_.voice(runner_);
  const FlowSchedule schedule_ = *make_schedule(*loaded_.flow, loaded_.model.evaluations);
  StreamPool pool_{loaded_.flow, loaded_.codec, schedule_, runner_, 2};
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

// The time in which the team works for others is not a stream's own.
TEST_F(StreamPoolOfTwo, TellsHowLongAStreamWaitedForOthers) {
  auto lease = pool_.lease(schedule_);
  ASSERT_TRUE(lease.has_value());
  const Stopwatch alone;
  say(*lease, voice_, ids_);
  EXPECT_LE(lease->waited_ms(), alone.elapsed_ms());
  double waited_ms = 0;
  for (int i = 0; i < 50 && waited_ms < 100; ++i) {  // who speaks may come late, when nothing is to be waited for
    const double before_ms = lease->waited_ms();
    std::atomic<bool> holds{false};
    std::thread other([&] {
      pool_.alone([&] {
        holds = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      });
    });
    while (!holds) std::this_thread::yield();
    const Stopwatch watch;
    say(*lease, voice_, ids_);
    waited_ms = lease->waited_ms() - before_ms;
    EXPECT_LT(waited_ms, watch.elapsed_ms());
    other.join();
  }
  EXPECT_GE(waited_ms, 100);
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

// A chunk that is due behind a frame is begun behind it; batch work waits for both.
TEST_F(StreamPoolOfTwo, WhatIsDueFirstGoesFirst) {
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

TEST_F(StreamPoolOfTwo, BatchWorkDoesNotWaitForEver) {
  std::vector<std::string> order;
  {
    Askers askers(pool_);
    pool_.alone([&] {
      askers.ask([&] { pool_.alone([&] { order.emplace_back("batch"); }); });
      for (int i = 0; i < StreamPool::kRoundsInARow + 2; ++i)
        askers.ask([&, i] { pool_.alone([&] { order.emplace_back("due"); }, i); });
    });
  }
  std::vector<std::string> expected(StreamPool::kRoundsInARow + 3, "due");
  expected[StreamPool::kRoundsInARow] = "batch";
  EXPECT_EQ(order, expected);
}

// Who has been served asks for a frame within an hour; batch work waits for rounds, then, not for a time.
class PatientStreamPool : public StreamPoolOfTwo {
 protected:
  static constexpr int kRounds = StreamPool::kRoundsInARow + 2;

  StreamPool::Lease leased() { return std::move(*patient_.lease()); }
  void begin(StreamPool::Lease& lease) { EXPECT_TRUE(lease.begin(voice_, ids_, 1e30f, 3).has_value()); }
  void next(StreamPool::Lease& lease) {
    EXPECT_TRUE(lease.next(std::vector<float>(lease.latent(), 0.25f), frames_.at(asked_++)));
  }
  // Batch work asks, and behind it others, round by round.  How many frames had been made when it ran.
  int64_t made_before_batch_work(const std::function<void()>& rounds) {
    int64_t made = 0;
    std::atomic<bool> done{false};
    std::thread batch([&] {
      patient_.alone([&] {
        made = std::count_if(frames_.begin(), frames_.end(), [](const auto& frame) { return !std::isnan(frame[0]); });
      });
      done = true;
    });
    while (patient_.waiting() == 0 && !done) std::this_thread::yield();
    rounds();
    batch.join();
    return made;
  }

  StreamPool patient_{loaded_.flow, loaded_.codec, schedule_, runner_, 1, std::chrono::hours(1)};
  std::vector<std::vector<float>> frames_ = std::vector<std::vector<float>>(
      kRounds + 1,
      std::vector<float>(pool_.lease(schedule_)->frame_samples(), std::numeric_limits<float>::quiet_NaN()));
  size_t asked_ = 0;
};

TEST_F(PatientStreamPool, BatchWorkWaitsForStreamsBetweenTwoFrames) {
  StreamPool::Lease lease = leased();
  begin(lease);
  next(lease);
  patient_.alone([] {}, kDueAtOnce);  // as somebody else's chunk: a round without frames
  const int64_t made = made_before_batch_work([&] {
    for (int i = 0; i < kRounds; ++i) next(lease);
  });
  EXPECT_EQ(made, 1 + StreamPool::kRoundsInARow);
}

TEST_F(PatientStreamPool, BatchWorkWaitsForTheFirstFrameOfAChunk) {
  StreamPool::Lease lease = leased();
  begin(lease);
  const int64_t made = made_before_batch_work([&] {
    for (int i = 0; i < kRounds; ++i) next(lease);
  });
  EXPECT_EQ(made, StreamPool::kRoundsInARow);
}

TEST_F(PatientStreamPool, BatchWorkWaitsForTheFirstChunkOfAStream) {
  StreamPool::Lease lease = leased();
  const int64_t made = made_before_batch_work([&] {
    begin(lease);
    for (int i = 1; i < kRounds; ++i) next(lease);
  });
  EXPECT_EQ(made, StreamPool::kRoundsInARow - 1);
}

// Streams that are asked for again and again, and begin nothing.
TEST_F(StreamPoolOfTwo, BatchWorkDoesNotWaitForStreamsWithoutEnd) {
  StreamPool pool(loaded_.flow, loaded_.codec, schedule_, runner_, 2, std::chrono::milliseconds(50));
  std::atomic<bool> done{false};
  { const auto first = pool.lease(); }
  std::thread batch([&] {
    pool.alone([] {});
    done = true;
  });
  while (!done) EXPECT_TRUE(pool.lease().has_value());
  batch.join();
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

// A first sound waits for one round of the others: the one that begins its chunk makes its frame beside theirs.
TEST_F(StreamPoolOfTwo, TheRoundThatBeginsAChunkMakesItsFirstFrame) {
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
  EXPECT_EQ(pool_.steps().count() - steps, 2u) << "one round of frames, and one of what came behind it";
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
  StreamPool pool(loaded_.flow, loaded_.codec, schedule_, runner_, 2, StreamPool::kNextFrame, clock);
  const auto pass = [&] { clock.advance_ns(100 * kMs); };
  const auto in_ms = [&](int64_t ms) { return clock.now_ns() + ms * kMs; };
  auto lease = pool.lease(schedule_);
  ASSERT_TRUE(lease.has_value());
  ASSERT_TRUE(lease->begin(voice_, ids_, 1e30f, 3).has_value());
  pool.alone(pass);
  pool.alone(pass, kDueAtOnce);
  EXPECT_EQ(pool.steps().count(), 0u);

  pool.alone(pass, in_ms(-50));  // the first sound of a text
  pool.alone(pass, in_ms(100));
  EXPECT_EQ(pool.steps().count(), 2u);
  EXPECT_EQ(pool.steps().late, 0u);
  pool.alone(pass, in_ms(99));
  EXPECT_EQ(pool.steps().late, 1u);

  const std::vector<float> noise(lease->latent(), 0.25f);
  std::vector<float> frame(lease->frame_samples());
  EXPECT_TRUE(lease->next(noise, frame, in_ms(0)));
  EXPECT_TRUE(lease->next(noise, frame, in_ms(1)));
  EXPECT_EQ(pool.steps().count(), 5u);
  EXPECT_EQ(pool.steps().late, 1u);
  {
    Askers askers(pool);
    pool.alone([&] {
      askers.ask([&, due_ns = in_ms(80)] { EXPECT_TRUE(lease->next(noise, frame, due_ns)); });
      askers.ask([&] { pool.alone(pass, kDueAtOnce + 1); });  // another's text, in the frame's round
    });
  }
  const StepFigures steps = pool.steps();
  EXPECT_EQ(steps.count(), 6u);
  EXPECT_EQ(steps.late, 2u);
  EXPECT_EQ(steps.took_ns, 400 * kMs);
}

// Streams of one round may evaluate the head differently often.
TEST(StreamPool, SchedulesAreEachStreamsOwn) {
  const Loaded loaded("english");
  ThreadTeam team(2);
  nn::Runner runner(team);
  const auto voice = loaded.voice(runner);
  const std::vector<int32_t> ids = {5, 6, 7};
  StreamPool pool(loaded.flow, loaded.codec, *make_schedule(*loaded.flow, 1), runner, 3);
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
  StreamPool pool(loaded.flow, loaded.codec, schedule, runner, 2);
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
