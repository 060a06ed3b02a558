// Prompts that are read beside the frames of others: how much of them in a round, who goes first, and the same samples.
#include "engine/families/qwen_tts/frame_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/families/qwen_tts/qwen_model.h"

namespace syrinx::qwen_tts {
namespace {

std::shared_ptr<const QwenModel> model() {
  static const std::shared_ptr<const QwenModel> loaded = [] {
    ThreadTeam packers(2);
    auto made = QwenModel::load(std::string(SYRINX_TEST_DATA) + "/qwen_tts/custom_voice",
                                {.precision = Precision::kInt8, .cache_folder = {}, .team = &packers});
    EXPECT_TRUE(made) << made.error().message;
    return made.value_or(nullptr);
  }();
  return loaded;
}

// Its text stands before the sound, or a longer one that begins with it runs beside it.
FramePool::Piece piece(size_t tokens, uint64_t seed, size_t frames, bool is_whole = true) {
  const std::vector<int32_t> words = *model()->tokenizer().encode("the user is in the air, 0123456789, and all that");
  std::vector<int32_t> ids;
  while (ids.size() < tokens) ids.push_back(words[(ids.size() * (seed + 1)) % words.size()]);
  auto prompt = make_prompt(model()->config(), {.role = model()->tokenizer().role(),
                                                .text = ids,
                                                .speaker = "ryan",
                                                .text_first = is_whole,
                                                .text_ends = is_whole});
  EXPECT_TRUE(prompt) << prompt.error().message;
  SpeechSettings settings;
  settings.draws.max_frames = frames;
  settings.seed = seed;
  return {.prompt = *std::move(prompt),
          .settings = settings,
          .expected_frames = SpeechGuard::expected_frames(tokens),
          .codec = nullptr};
}

// Its time stands still, so that what a position costs is never known.
class FramePoolTest : public ::testing::Test {
 protected:
  static constexpr size_t kStreams = 4;

  void SetUp() override {
    auto made = FramePool::make(model()->weights(), model()->codec(), runner_, queue_, kStreams);
    ASSERT_TRUE(made) << made.error().message;
    pool_ = *std::move(made);
  }
  FramePool::Lease begun(FramePool::Piece piece) {
    FramePool::Lease lease = *pool_->lease();
    EXPECT_TRUE(lease.begin(std::move(piece)));
    return lease;
  }
  // Until the piece has ended.
  static std::vector<float> rest(FramePool::Lease& lease, std::vector<float> samples = {}) {
    while (true) {
      const auto made = lease.next(1, samples);
      EXPECT_TRUE(made) << made.error().message;
      if (!made || made->ended) return samples;
    }
  }
  std::vector<float> alone(FramePool::Piece piece) {
    FramePool::Lease lease = begun(std::move(piece));
    return rest(lease);
  }
  void start(std::function<void()> body) {
    const size_t before = waiting();
    threads_.emplace_back(std::move(body));
    while (waiting() == before) std::this_thread::yield();
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  size_t waiting() const { return pool_->Rounds::waiting(); }

  ManualClock clock_;
  Scheduler scheduler_{clock_};
  StepQueue queue_{scheduler_};
  ThreadTeam team_{2};
  nn::Runner runner_{team_};
  std::unique_ptr<FramePool> pool_;
  std::vector<std::thread> threads_;
};

constexpr size_t kTokens = 400;

// A stream is asked twice a round whether it is wanted, in it and behind it.
TEST_F(FramePoolTest, NewcomerAloneReadsWholePasses) {
  FramePool::Piece one = piece(kTokens, 1, 1);
  const size_t passes = one.prompt.positions.size() / Talker::kPassRows + 1;
  FramePool::Lease lease = begun(std::move(one));
  size_t asked = 0;
  lease.ask_first([&] { return ++asked > 0; });
  rest(lease);
  EXPECT_LE(asked, 2 * (passes + 1) + 2);
  EXPECT_EQ(pool_->times().rounds, passes + 1);  // the last one finds that the frame was all
  EXPECT_EQ(pool_->times().longest_slice, 0u);
}

TEST_F(FramePoolTest, NewcomerReadsSlicesBesideOthers) {
  constexpr size_t kFrames = 45;
  std::vector<std::vector<float>> want;
  for (uint64_t seed = 0; seed < 3; ++seed) want.push_back(alone(piece(20, seed, kFrames)));
  want.push_back(alone(piece(kTokens, 3, 8)));
  std::vector<FramePool::Lease> others;
  std::vector<std::vector<float>> begun_others(3);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    others.push_back(begun(piece(20, seed, kFrames)));
    ASSERT_TRUE(others.back().next(1, begun_others[seed]));
  }
  FramePool::Piece late = piece(kTokens, 3, 8);
  const size_t slices = late.prompt.positions.size() / PromptShare::kFirstRows + 2;
  FramePool::Lease newcomer = begun(std::move(late));
  size_t asked = 0, asked_first = 0;
  newcomer.ask_first([&] { return ++asked > 0; });
  {
    const StepQueue::Turn held(queue_);
    for (size_t n = 0; n < 3; ++n)
      start([&, n] { EXPECT_TRUE(rest(others[n], std::move(begun_others[n])) == want[n]) << n; });
    start([&] {
      std::vector<float> samples;
      EXPECT_TRUE(newcomer.next(1, samples));
      asked_first = asked;
      EXPECT_TRUE(rest(newcomer, std::move(samples)) == want[3]);
    });
  }
  join();
  EXPECT_EQ(pool_->times().longest_slice, PromptShare::kFirstRows);
  EXPECT_LE(asked_first, 2 * slices + 2);
}

// A stream that waits for text is no speaker, though the sound of its last frames is made.
TEST_F(FramePoolTest, NewcomerReadsWholePassesBesideAwaitedText) {
  FramePool::Lease awaits = begun(piece(5, 0, 60, false));
  std::vector<float> samples;
  while (!awaits.needs_text()) {
    const auto made = awaits.next(FramePool::kMaxChunk, samples);
    ASSERT_TRUE(made && !made->ended);
  }
  ASSERT_GT(awaits.pending(), 0u);
  awaits.rest();
  ASSERT_TRUE(awaits.decode(samples));
  EXPECT_FALSE(samples.empty());
  FramePool::Piece late = piece(kTokens, 1, 1);
  const size_t passes = (late.prompt.positions.size() + Talker::kPassRows - 1) / Talker::kPassRows;
  FramePool::Lease newcomer = begun(std::move(late));
  const size_t before = pool_->times().rounds;
  ASSERT_TRUE(newcomer.next(1, samples));
  EXPECT_EQ(pool_->times().rounds - before, passes);
}

TEST_F(FramePoolTest, ShortPromptPassesLongOne) {
  std::vector<float> spoken;
  FramePool::Lease speaker = begun(piece(20, 0, 60)), slow = begun(piece(kTokens, 1, 2));
  ASSERT_TRUE(speaker.next(1, spoken));
  FramePool::Piece few = piece(12, 2, 1);
  const size_t slices = few.prompt.positions.size() / PromptShare::kFirstRows + 1;
  FramePool::Lease quick = begun(std::move(few));
  size_t asked = 0, asked_first = 0;
  quick.ask_first([&] { return ++asked > 0; });
  {
    const StepQueue::Turn held(queue_);
    start([&] { rest(speaker); });
    start([&] { rest(slow); });
    start([&] {
      std::vector<float> samples;
      EXPECT_TRUE(quick.next(1, samples));
      asked_first = asked;
    });
  }
  join();
  EXPECT_LE(asked_first, 2 * 2 * (slices + 1));
}

// 20 tokens of instruction, so that prompts have a beginning that is shared.
TEST_F(FramePoolTest, LaterPiecesReadTheirTextAlone) {
  const auto instructed = [](uint64_t seed) {
    FramePool::Piece made = piece(15, seed, 6);
    std::vector<PromptPosition>& positions = made.prompt.positions;
    positions.insert(positions.begin(), 20, positions.front());
    made.prompt.shared += 20;
    return made;
  };
  const size_t whole = instructed(0).prompt.positions.size(), shared = instructed(0).prompt.shared;
  const auto rows_of = [&](uint64_t seed, std::vector<float>& samples) {
    const size_t before = pool_->times().prompt_rows;
    samples = alone(instructed(seed));
    return pool_->times().prompt_rows - before;
  };
  std::vector<float> first, again, other;
  EXPECT_EQ(rows_of(0, first), whole);
  EXPECT_EQ(rows_of(0, again), whole - shared);
  EXPECT_TRUE(again == first);
  EXPECT_EQ(rows_of(1, other), whole - shared);
  EXPECT_FALSE(other == first);
  SetUp();
  std::vector<float> fresh;
  EXPECT_EQ(rows_of(1, fresh), whole);
  EXPECT_TRUE(fresh == other);
}

TEST(PromptPrefixes, OldestMakeRoom) {
  Prompt prompt;
  prompt.positions.resize(30);
  prompt.shared = 20;
  const auto prefix = [&](float voice) {
    PromptPrefix made;
    made.positions.assign(prompt.positions.begin(), prompt.positions.begin() + 20);
    made.voice = {voice};
    return std::make_shared<const PromptPrefix>(std::move(made));
  };
  const auto find = [&](PromptPrefixes& prefixes, float voice) {
    prompt.voice = {voice};
    return prefixes.find(prompt) != nullptr;
  };
  PromptPrefixes prefixes(2 * prefix(1)->bytes());
  prefixes.keep(nullptr);
  prefixes.keep(prefix(1));
  prefixes.keep(prefix(2));
  prefixes.keep(prefix(2));
  EXPECT_TRUE(find(prefixes, 1));
  prefixes.keep(prefix(3));
  EXPECT_TRUE(find(prefixes, 1) && find(prefixes, 3));
  EXPECT_FALSE(find(prefixes, 2));
  prefixes.drop({});
  const std::vector<float> gone = {1};
  prefixes.drop(gone);
  EXPECT_FALSE(find(prefixes, 1));
  EXPECT_TRUE(find(prefixes, 3));
  prefixes.keep(prefix(2));
  EXPECT_TRUE(find(prefixes, 2) && find(prefixes, 3));
  PromptPrefixes small(prefix(1)->bytes() - 1);
  small.keep(prefix(1));
  EXPECT_FALSE(find(small, 1));
  prompt.shared = PromptPrefix::kLeastPositions - 1;
  EXPECT_FALSE(find(prefixes, 3));
}

// Amid its prompt; its stream is free again.
TEST_F(FramePoolTest, CancelledNewcomerLeavesItsStream) {
  const std::vector<float> want = alone(piece(20, 0, 40)), want_late = alone(piece(kTokens, 2, 3));
  std::vector<float> spoken;
  FramePool::Lease speaker = begun(piece(20, 0, 40));
  ASSERT_TRUE(speaker.next(1, spoken));
  {
    FramePool::Lease newcomer = begun(piece(kTokens, 1, 3));
    std::atomic<int> asked{0};
    newcomer.ask_first([&] { return ++asked < 10; });
    {
      const StepQueue::Turn held(queue_);
      start([&] { EXPECT_TRUE(rest(speaker, std::move(spoken)) == want); });
      start([&] {
        std::vector<float> samples;
        const auto made = newcomer.next(1, samples);
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().code, Code::kCancelled);
        EXPECT_TRUE(samples.empty());
      });
    }
    join();
    EXPECT_EQ(asked, 10);
  }
  std::vector<FramePool::Lease> all;
  for (size_t n = 1; n < kStreams; ++n) all.push_back(*pool_->lease());
  ASSERT_TRUE(all.back().begin(piece(kTokens, 2, 3)));
  EXPECT_TRUE(rest(all.back()) == want_late);
  EXPECT_EQ(waiting() + queue_.asking(), 0u);
}

constexpr int64_t kMs = 1'000'000;

TEST(PromptShare, SlicesFitIntoTimeThatIsLeft) {
  constexpr int64_t kNow = 1000 * kMs;
  PromptShare share;
  EXPECT_EQ(share.rows({.streams = 3, .due_ns = kNow}, kNow), PromptShare::kFirstRows);
  share.note_slice(100, 0, 50 * kMs);
  share.note_step(40 * kMs);
  share.note_decode(2, 20 * kMs);
  const auto rows = [&](size_t decoded, int64_t due_ns) {
    return share.rows({.streams = 3, .decoded = decoded, .due_ns = due_ns}, kNow);
  };
  EXPECT_EQ(rows(0, kNow + 1000 * kMs), 80u);  // a frame's length without the step
  EXPECT_EQ(rows(0, kNeverDue), 80u);
  EXPECT_EQ(rows(2, kNow + 1000 * kMs), 40u);
  EXPECT_EQ(rows(0, kNow + 60 * kMs), 40u);  // until the first is due
  for (const int64_t due_ns : {kDueAtOnce, kNow - kMs, kNow, kNow + 45 * kMs}) EXPECT_EQ(rows(0, due_ns), 16u);
  EXPECT_EQ(rows(30, kNow + 1000 * kMs), 85u);  // an eighth of a step that is too long
  EXPECT_EQ(share.rows({}, kNow), 80u);         // others may ask at any moment
}

TEST(PromptShare, OddMeasurementsMoveItLittle) {
  PromptShare share;
  share.note_slice(10, 0, 10 * kMs);
  EXPECT_EQ(share.rows({}, 0), 40u);
  share.note_slice(10, 0, 1000 * kMs);
  EXPECT_EQ(share.rows({}, 0), 32u);
  share.note_step(40 * kMs);
  share.note_slice(10, 2, 30 * kMs);  // less than without it
  EXPECT_EQ(share.rows({}, 0), 42u);
  for (int i = 0; i < 20; ++i) share.note_slice(1, 0, 1000 * kMs);
  EXPECT_EQ(share.rows({}, 0), PromptShare::kLeastRows);
  share.note_step(1000 * kMs);  // 50 ms by now
  EXPECT_EQ(share.step_ns(), 50 * kMs);
  for (int i = 0; i < 200; ++i) share.note_slice(100, 2, 0);
  for (int i = 0; i < 200; ++i) share.note_slice(1, 0, 10 * kMs);  // an estimate of nothing is no trap
  EXPECT_EQ(share.rows({}, 0), PromptShare::kLeastRows);
}

}  // namespace
}  // namespace syrinx::qwen_tts
