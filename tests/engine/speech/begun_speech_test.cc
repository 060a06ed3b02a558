// A speaker that begins a sentence before it has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/speech/sentence_speaker.h"
#include "engine/speech/speech_session.h"

namespace syrinx {
namespace {

using testing::ElementsAre;

class Events {
 public:
  void add(std::string event) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(event));
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  void wait_for(const std::string& event) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (all().empty() || all().back() != event) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << event << " has not come";
      std::this_thread::yield();
    }
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
};

using Limit = std::optional<std::chrono::milliseconds>;

// Says 10 samples as soon as two words have begun, or a sentence has been read, behind all that follows; waits for that
// at most `limit` at a time.
class EagerSpeaker final : public SentenceSpeaker {
 public:
  explicit EagerSpeaker(Events& events, Limit limit = std::nullopt)
      : SentenceSpeaker({}), events_(events), limit_(limit) {}
  size_t chunks_ahead() const override { return 4; }
  int rate_hz() const override { return 1000; }

 private:
  Status read(const Sentence& sentence, SpeechStream& /*stream*/) override {
    events_.add(std::to_string(sentence.offset) + " read: " + sentence.text);
    waits_ = is_read_ = true;
    return {};
  }
  Result<bool> hear_begun(std::string_view text, size_t offset, SpeechStream& /*stream*/) override {
    if (text != begun_) events_.add(std::to_string(offset) + " begun: " + std::string(text));
    begun_ = text;
    waits_ = waits_ || text.find(' ') != std::string_view::npos;
    return true;
  }
  Result<bool> say(bool /*now*/, SpeechStream& stream) override {
    if (!waits_) return false;
    events_.add("say");
    for (size_t waits = 0;; ++waits) {
      if (waits == 200) return fail(Code::kInternal, "no rest has been told");
      SYRINX_TRY(const Moment moment, take_more(limit_, stream));
      if (moment == Moment::kFlow || (moment == Moment::kPause && !is_read_)) continue;
      events_.add(moment == Moment::kEnd ? "end" : "pause");
      break;
    }
    waits_ = is_read_ = false;
    SpeechChunk chunk;
    chunk.samples.assign(10, 0.5f);
    SYRINX_TRY_VOID(stream.hand_over(std::move(chunk)));
    return true;
  }
  Status end() override { return {}; }
  Status use_voice(const std::string& name) override {
    events_.add("voice " + name);
    return {};
  }
  void be_silent(size_t samples) override { events_.add("silent " + std::to_string(samples)); }

  Events& events_;
  const Limit limit_;
  bool waits_ = false, is_read_ = false;
  std::string begun_;
};

size_t hear(SpeechSession& session) {
  size_t samples = 0;
  for (SpeechChunk chunk;;) {
    const auto more = session.next(chunk);
    EXPECT_TRUE(more) << more.error().message;
    if (!more || !*more) return samples;
    samples += chunk.samples.size();
  }
}

// A rest is found by waits that are shorter, one after another.
TEST(BegunSpeech, ShortWaitsFindARest) {
  Events events;
  SpeechSession session(std::make_unique<EagerSpeaker>(events, std::chrono::milliseconds(40)));
  ASSERT_TRUE(session.write("Hello there. "));
  SpeechChunk chunk;
  const auto more = session.next(chunk);
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(events.all().back(), "pause");
}

TEST(BegunSpeech, SentenceIsSaidWhileItArrives) {
  Events events;
  SpeechSession session(std::make_unique<EagerSpeaker>(events));
  ASSERT_TRUE(session.write("Hello there"));
  events.wait_for("say");
  ASSERT_TRUE(session.write(" my friend. "));
  events.wait_for("pause");
  ASSERT_TRUE(session.write("Go on"));
  session.finish();
  EXPECT_EQ(hear(session), 20u);
  EXPECT_THAT(events.all(), ElementsAre("0 begun: Hello there", "say", "0 begun: Hello there my friend",
                                        "0 read: Hello there my friend.", "pause", "23 begun: Go on", "say",
                                        "23 read: Go on", "end"));
}

TEST(BegunSpeech, MarkEndsSentence) {
  Events events;
  SpeechSession session(std::make_unique<EagerSpeaker>(events));
  ASSERT_TRUE(session.speak("One two [pause:50ms] [voice:x] three"));
  EXPECT_EQ(hear(session), 70u);
  EXPECT_THAT(events.all(), ElementsAre("0 begun: One two ", "say", "0 read: One two", "end", "silent 50", "voice x",
                                        "31 begun: three", "31 read: three", "say", "end"));
}

TEST(BegunSpeech, CancelEndsTheWait) {
  Events events;
  SpeechSession session(std::make_unique<EagerSpeaker>(events));
  ASSERT_TRUE(session.write("Hello there"));
  events.wait_for("say");
  session.cancel();
  SpeechChunk chunk;
  const auto more = session.next(chunk);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace syrinx
