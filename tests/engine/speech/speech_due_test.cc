// When a session's next sound is due, by a clock that the test moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/families/kokoro/kokoro_speaker.h"
#include "engine/speech/speech_session.h"

namespace syrinx {
namespace {

constexpr int kSpeechRateHz = 24000;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kChunkMs = 100;

// Due times that a speaker was given, in milliseconds.
class Dues {
 public:
  void add(int64_t due_ns) {
    const std::lock_guard lock(mutex_);
    ms_.push_back(due_ns / kMs);
  }
  // Once there are so many, the last ones.
  std::vector<int64_t> take(size_t count) {
    for (;; std::this_thread::yield()) {
      const std::lock_guard lock(mutex_);
      if (ms_.size() >= count) return std::exchange(ms_, {});
    }
  }

 private:
  std::mutex mutex_;
  std::vector<int64_t> ms_;
};

// Makes a chunk of each letter, and tells when it is due behind each text and each chunk.
class LetterSpeaker final : public Speaker {
 public:
  explicit LetterSpeaker(Dues& dues) : dues_(dues) {}
  size_t chunks_ahead() const override { return 4; }
  int rate_hz() const override { return kSpeechRateHz; }
  Status speak(SpeechStream& stream) override {
    for (;;) {
      std::string text;
      SYRINX_TRY(const auto arrival, stream.take_text(std::nullopt, text));
      dues_.add(stream.due_ns());
      for (size_t i = 0; i < text.size(); ++i) {
        SpeechChunk chunk = stream.spare();
        chunk.samples.assign(kSpeechRateHz * kChunkMs / 1000, 0.1f);
        SYRINX_TRY_VOID(stream.hand_over(std::move(chunk)));
        dues_.add(stream.due_ns());
      }
      if (arrival == SpeechStream::Arrival::kEnd) return {};
    }
  }

 private:
  Dues& dues_;
};

class SpeechDue : public testing::Test {
 protected:
  void SetUp() override { clock_.advance_ns(10'000 * kMs); }
  void take(size_t chunks) {
    for (size_t i = 0; i < chunks; ++i) ASSERT_TRUE(speech_.next()->has_value());
  }

  ManualClock clock_;
  Dues dues_;
  SpeechSession speech_{std::make_unique<LetterSpeaker>(dues_), clock_};
};

using List = std::vector<int64_t>;

// When the text came at first, and then when what has been made has been heard.
TEST_F(SpeechDue, IsWhenTheListenerRunsOutOfSound) {
  ASSERT_TRUE(speech_.write("ab"));
  EXPECT_EQ(dues_.take(3), (List{10'000, 10'100, 10'200}));
  take(2);
  clock_.advance_ns(50 * kMs);
  ASSERT_TRUE(speech_.write("c"));  // while there is sound
  EXPECT_EQ(dues_.take(2), (List{10'200, 10'300}));
  take(1);
  clock_.advance_ns(5000 * kMs);
  ASSERT_TRUE(speech_.write("d"));  // long after it
  EXPECT_EQ(dues_.take(2), (List{15'050, 15'150}));
}

TEST_F(SpeechDue, BatchWorkIsNeverDue) {
  speech_.make_batch();
  ASSERT_TRUE(speech_.speak("ab"));
  EXPECT_EQ(dues_.take(3), List(3, kNeverDue / kMs));
}

// A listener that stops taking audio has all of it left to play, and is not late when it goes on.
TEST_F(SpeechDue, PausedListenerIsNotLate) {
  ASSERT_TRUE(speech_.write("abcdef"));
  EXPECT_EQ(dues_.take(5), (List{10'000, 10'100, 10'200, 10'300, 10'400}));  // the fifth chunk finds no room
  clock_.advance_ns(60'000 * kMs);
  take(1);
  EXPECT_EQ(dues_.take(1), (List{70'000 + 4 * kChunkMs}));
  take(5);
  EXPECT_EQ(dues_.take(1), (List{70'000 + 5 * kChunkMs}));
}

// A listener that takes audio as fast as it is made counts as a bounded time ahead, and gets its turn behind new texts.
TEST_F(SpeechDue, IsNeverFarAhead) {
  constexpr int64_t kMostMs = SpeechSession::kMostAheadNs / kMs, kMost = kMostMs / kChunkMs;
  ASSERT_TRUE(speech_.write(std::string(kMost + 50, 'a')));
  take(kMost + 50);
  List expected;
  for (int64_t i = 0; i <= kMost + 50; ++i) expected.push_back(10'000 + std::min(i * kChunkMs, kMostMs));
  EXPECT_EQ(dues_.take(kMost + 51), expected);
  clock_.advance_ns(4000 * kMs);
  ASSERT_TRUE(speech_.write("b"));
  EXPECT_EQ(dues_.take(2), (List{14'000 + kMostMs, 14'000 + kMostMs}));
  clock_.advance_ns(2000 * kMs);  // 9.1 s are left to be heard
  ASSERT_TRUE(speech_.write("c"));
  EXPECT_EQ(dues_.take(2), (List{25'100, 25'200}));
}

// Says a tenth of a second of whatever it is asked for, and tells when that was due.
class PieceMaker final : public SpeechMaker {
 public:
  explicit PieceMaker(Dues& dues) : dues_(dues) {}
  Status use_voice(const std::string& /*name*/) override { return {}; }
  Result<g2p::Phonemized> phonemize(std::string_view sentence, size_t /*source_offset*/) override {
    g2p::Phonemized made;
    made.phonemes = sentence;
    return made;
  }
  Status synthesize(std::span<const int32_t> ids, size_t /*symbols*/, uint64_t /*seed*/, int64_t due_ns,
                    const std::function<bool()>& /*is_wanted*/, kokoro::PieceOutput& output) override {
    dues_.add(due_ns);
    output.durations.assign(ids.size() + 2, 1);
    output.samples.assign(kSpeechRateHz * kChunkMs / 1000, 0.1f);
    return {};
  }
  double waited_ms() const override { return 0; }

 private:
  Dues& dues_;
};

// Kokoro's engine takes its turns by what its session says.
TEST(KokoroDue, IsTheSessions) {
  ManualClock clock;
  clock.advance_ns(10'000 * kMs);
  Dues dues;
  SpeakOptions options;
  options.knobs.set("phonemes", 1.0);
  SpeechSession speech(std::make_unique<KokoroSpeaker>(std::make_unique<PieceMaker>(dues), options), clock);
  ASSERT_TRUE(speech.write("a.\n"));
  EXPECT_EQ(dues.take(1), (List{10'000}));
  ASSERT_TRUE(speech.next()->has_value());
  clock.advance_ns(5000 * kMs);
  ASSERT_TRUE(speech.write("b.\n"));
  EXPECT_EQ(dues.take(1), (List{15'000}));
}

}  // namespace
}  // namespace syrinx
