// A stream of the transducer profile without a socket: messages in, messages out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "audio/pcm.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/families/whisper/whisper_family.h"
#include "server/decode/stream_session.h"
#include "server/host/slots.h"
#include "server/settings/settings.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/fake_recogniser.h"
#include "tests/server/host/job_run.h"

namespace syrinx::server::decode {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kPatienceMs = 60000;
constexpr int64_t kSecond = 1'000'000'000;
const std::string kEnd(1, '\x00'), kKeepalive(1, '\x01');

std::string pcm(const std::vector<float>& sound) {
  std::vector<int16_t> samples(sound.size());
  PcmQuantizer().convert(sound, samples);
  return {reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(int16_t)};
}
std::string beeping(const std::vector<double>& at_s, double length_s) {
  return pcm(beeps(at_s, length_s, kRecognitionRateHz));
}

// Stands still until advanced, and tells that somebody has looked at it.
class WatchedClock final : public Clock {
 public:
  int64_t now_ns() const override {
    ++looks;
    return now_ns_;
  }
  void advance_s(int64_t seconds) { now_ns_ += seconds * kSecond; }

  mutable std::atomic<int> looks{0};

 private:
  std::atomic<int64_t> now_ns_{0};
};

class DecodeStream : public testing::Test {
 protected:
  void SetUp() override {
    RecognitionFiles files;
    files.family = &whisper_family();
    files.checkpoint = "/secret/place/model.bin";
    auto model = RecognitionModel::of(settings_, files, recogniser_);
    ASSERT_TRUE(model) << model.error().message;
    model_ = *model;
    ASSERT_TRUE(slots_.start());
  }
  void TearDown() override { leave(); }
  void leave() {
    recogniser_->still = false;
    if (messages_) messages_->leave();
    EXPECT_TRUE(slots_are_busy(0));
  }

  void start(StreamOrder order = {}, RequestLog* log = nullptr) {
    order.model = model_;
    const auto session =
        std::make_shared<StreamSession>(std::move(order), JobReports{metrics_, log, false, &waiting_samples_}, clock_);
    messages_ = session->messages();
    ASSERT_TRUE(slots_.try_start([session](SlotWatch& watch) { session->run(watch); }, [session] { session->end(); }));
  }
  void say(std::string bytes, bool is_text = false) {
    const Stopwatch waited;
    while (!messages_->takes_more()) {
      ASSERT_LT(waited.elapsed_ms(), kPatienceMs) << "the stream takes nothing more";
      std::this_thread::yield();
    }
    messages_->deliver({.bytes = std::move(bytes), .is_text = is_text, .came_ns = clock_.now_ns()});
  }
  // "(silence)": nothing came for long.
  std::string hear() {
    MessageStream::Message message;
    const Stopwatch waited;
    while (!messages_->try_pop(message)) {
      if (waited.elapsed_ms() > kPatienceMs) return "(silence)";
      std::this_thread::yield();
    }
    EXPECT_TRUE(message.is_text);
    last_ = *parse_json(message.bytes, "the message");
    return *last_.find("status")->string();
  }
  // Their words, up to a message of that status.
  std::vector<std::string> hear_until(const std::string& status) {
    std::vector<std::string> words;
    for (std::string heard; heard != status && heard != "(silence)"; words.push_back(text("transcription")))
      heard = hear();
    EXPECT_EQ(text("status"), status) << last_.dump();
    return words;
  }
  std::string text(const char* key) const {
    const Json* const value = last_.find(key);
    return value == nullptr ? "(nothing)" : value->string() != nullptr ? *value->string() : value->dump();
  }
  int closed_with() const {
    const Stopwatch waited;
    while (!messages_->ended() && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    return messages_->ended() ? messages_->ended()->code : 0;
  }
  // The last message before the stream is closed with `code`.
  void expect_end(const char* sentence, int code) {
    hear_until("ERROR");
    EXPECT_THAT(text("message"), HasSubstr(sentence));
    EXPECT_EQ(closed_with(), code);
    EXPECT_TRUE(slots_are_busy(0));
  }
  // That so much has been taken that is not heard yet, in the end.
  bool sound_waits(int64_t samples) const {
    const Stopwatch waited;
    while (waiting_samples_ != samples && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    return waiting_samples_ == samples;
  }
  // That the engine has been asked: what comes from now on is not taken before it has answered.
  bool engine_is_asked() const {
    const Stopwatch waited;
    while (recogniser_->pushes == 0 && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    return recogniser_->pushes > 0;
  }
  // In the end.
  bool engine_is_silent() const {
    const Stopwatch waited;
    while (slots_.engine_silent_s() > 0 && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    return slots_.engine_silent_s() > 0;
  }
  // Until the stream, which has nothing to hear, has looked around once at least: it looks at the clock first.
  void looks_around() {
    const int before = clock_.looks;
    const Stopwatch waited;
    while (clock_.looks < before + 2 && !messages_->ended() && waited.elapsed_ms() < kPatienceMs) {
      messages_->poke();
      std::this_thread::yield();
    }
  }
  // In the end.
  bool slots_are_busy(size_t wanted) const {
    const Stopwatch waited;
    while (slots_.busy() != wanted && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    return slots_.busy() == wanted;
  }

  Settings settings_;
  const TempFolder folder_;
  const std::shared_ptr<FakeRecogniser> recogniser_ = std::make_shared<FakeRecogniser>();
  std::shared_ptr<const RecognitionModel> model_;
  Metrics metrics_;
  std::atomic<int64_t> waiting_samples_{0};
  WatchedClock clock_;
  std::shared_ptr<MessageStream> messages_;
  Json last_;
  SlotPool slots_{1, clock_};  // last: its jobs use the above
};

TEST_F(DecodeStream, SoundBecomesWords) {
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start({.opaque = "mine \xC3\xA9", .id = "7"}, &lines);
    const std::string sound = beeping({0.3, 0.9}, 1.5);
    const size_t half = size_t{2} * kRecognitionRateHz * 7 / 10;
    say(sound.substr(0, half));
    EXPECT_THAT(hear_until("ACTIVE"), ElementsAre("beep"));
    say(sound.substr(half));
    EXPECT_THAT(hear_until("ACTIVE"), ElementsAre("beep beep"));
    say(kEnd);
    EXPECT_THAT(hear_until("COMPLETE"), ElementsAre("beep beep"));
    EXPECT_EQ(closed_with(), 1000);
  });
  EXPECT_EQ(text("opaque"), "mine \xC3\xA9");
  EXPECT_EQ(text("message"), "(nothing)");
  EXPECT_EQ(*last_.find("metadata")->find("audio_length_seconds")->real(), 1.5);
  EXPECT_NE(last_.find("metadata")->find("processing_time_ms")->real(), nullptr);
  EXPECT_TRUE(slots_are_busy(0));
  EXPECT_THAT(log, HasSubstr(R"("event":"stream","id":"7")"));
  EXPECT_THAT(log, HasSubstr(R"("stopped":"done","audio_seconds":1.5)"));
  EXPECT_THAT(log, Not(HasSubstr("beep")));
  EXPECT_THAT(metrics_.text(), HasSubstr("direction=\"in\"} 1.5\n"));
}

TEST_F(DecodeStream, PiecesOfAnySizeBecomeTheSameWords) {
  const std::string sound = beeping({0.3, 0.9, 1.3}, 1.9);
  for (const size_t piece : {size_t{2}, size_t{34}, size_t{3202}, sound.size()}) {
    start({.messages_per_s = 1e6});
    for (size_t at = 0; at < sound.size(); at += piece) say(sound.substr(at, piece));
    say(std::string());  // no sound, and no command
    say(kEnd);
    EXPECT_EQ(hear_until("COMPLETE").back(), "beep beep beep") << piece;
    leave();
  }
}

TEST_F(DecodeStream, WithoutSoundThereAreNoWordsButAnEnd) {
  start();
  say(kEnd);
  EXPECT_THAT(hear_until("COMPLETE"), ElementsAre(""));
  EXPECT_EQ(text("opaque"), "(nothing)");
  EXPECT_EQ(closed_with(), 1000);
}

TEST_F(DecodeStream, AKeepaliveIsAnsweredWhereNoSoundCame) {
  start();
  say(kKeepalive);
  EXPECT_EQ(hear(), "PAUSED");
  say(beeping({0.1}, 0.5));
  EXPECT_EQ(hear(), "ACTIVE");
  say(kKeepalive);
  say(kKeepalive);
  EXPECT_EQ(hear(), "PAUSED");
  EXPECT_EQ(text("transcription"), "beep");
  say(kEnd);
  EXPECT_EQ(hear(), "COMPLETE");
}

TEST_F(DecodeStream, OtherControlBytes) {
  start({.end_byte = 0xFF, .keepalive_byte = 0x00});
  say(std::string(1, '\x00'));
  EXPECT_EQ(hear(), "PAUSED");
  say(std::string(1, '\x01'));
  EXPECT_EQ(hear(), "ERROR");
  EXPECT_THAT(text("message"), HasSubstr("0x01 means nothing here; 0xff ends the stream, 0x00 keeps it alive"));
  say(std::string(1, '\xFF'));
  EXPECT_EQ(hear(), "COMPLETE");
}

TEST_F(DecodeStream, HalfASampleIsRefusedAndTheStreamGoesOn) {
  start();
  say(beeping({0.1}, 0.5));
  say("abc");
  hear_until("ERROR");
  EXPECT_THAT(text("message"), HasSubstr("3 bytes, and a sample has 2; nothing of it was taken"));
  say(kEnd);
  EXPECT_EQ(hear_until("COMPLETE").back(), "beep");
  EXPECT_EQ(*last_.find("metadata")->find("audio_length_seconds")->real(), 0.5);
}

TEST_F(DecodeStream, TextEndsIt) {
  start();
  say("hello", /*is_text=*/true);
  expect_end("binary messages", 1003);
}

// Whatever the engine does: the client has to mend that.
TEST_F(DecodeStream, SoundAheadOfTheClockEndsIt) {
  start({.max_backlog_s = 3});
  say(beeping({0.1}, 2));
  say(beeping({0.1}, 2));
  expect_end("more than 3 s would be ahead of time; nothing of them was taken: send sound at the pace of speech", 1008);
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_rejected_total{reason=\"audio_backlog\"} 1\n"));
}

// By when it came, however late the stream looks at it.
TEST_F(DecodeStream, SoundAheadOfTheClockIsNoFaultOfTheEngine) {
  recogniser_->still = true;
  start({.max_backlog_s = 3, .idle_s = 1000});
  say(beeping({0.1}, 2));
  EXPECT_TRUE(engine_is_asked());
  say(beeping({0.1}, 2));
  clock_.advance_s(100);
  recogniser_->still = false;
  expect_end("would be ahead of time", 1008);
}

// The client is told to try again, and the operator that it had to be.
TEST_F(DecodeStream, SoundThatTheEngineDoesNotKeepUpWithEndsIt) {
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    recogniser_->still = true;
    start({.max_backlog_s = 3, .idle_s = 1000}, &lines);
    say(beeping({0.1}, 2));
    EXPECT_TRUE(engine_is_asked());
    clock_.advance_s(100);
    say(beeping({0.1}, 2));
    recogniser_->still = false;
    expect_end("the server is behind: 1.9 s of sound wait, and with these 2.0 s they would be more than 3 s", 1013);
  });
  EXPECT_EQ(messages_->ended()->reason, "try again later");
  EXPECT_THAT(log, HasSubstr(R"("stopped":"error","error":"3.9 s of sound waited for the recogniser)"));
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_rejected_total{reason=\"audio_backlog\"} 1\n"));
  EXPECT_EQ(waiting_samples_, 0);  // what was left is not heard any more
}

// By the clock, from its coming on; the engine is told when it came, too.
TEST_F(DecodeStream, SoundThatWaitsIsMeasured) {
  recogniser_->still = true;
  clock_.advance_s(5);
  start();
  const std::string sound = beeping({0.1}, 0.3);
  say(sound.substr(0, sound.size() / 2));
  EXPECT_TRUE(sound_waits(2400));
  clock_.advance_s(1);
  say(sound.substr(sound.size() / 2));
  clock_.advance_s(3);
  recogniser_->still = false;
  EXPECT_EQ(hear(), "ACTIVE");
  EXPECT_TRUE(sound_waits(0));
  say(kEnd);
  hear_until("COMPLETE");
  // In pieces of 0.1 s, of which the second ends in what came second.
  EXPECT_THAT(recogniser_->came_ns, ElementsAre(5 * kSecond, 6 * kSecond, 6 * kSecond));
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_queue_delay_seconds_sum{model=\"" + model_->id() + "\"} 4\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_queue_delay_seconds_count{model=\"" + model_->id() + "\"} 1\n"));
}

// Over all words of a stream, from the time their audio came.
TEST_F(DecodeStream, TheFirstWordIsMeasured) {
  recogniser_->still = true;
  clock_.advance_s(5);
  start();
  say(beeping({0.1, 0.6}, 1));
  EXPECT_TRUE(engine_is_asked());
  clock_.advance_s(4);
  recogniser_->still = false;
  say(kEnd);
  hear_until("COMPLETE");
  EXPECT_EQ(text("transcription"), "beep beep");
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_time_to_first_word_seconds_sum{model=\"" + model_->id() + "\"} 4\n"));
  EXPECT_THAT(metrics_.text(),
              HasSubstr("syrinx_time_to_first_word_seconds_count{model=\"" + model_->id() + "\"} 1\n"));
}

TEST_F(DecodeStream, AbandonedAudioDoesNotWait) {
  recogniser_->still = true;
  start();
  say(beeping({0.1}, 2));
  EXPECT_TRUE(sound_waits(2 * kRecognitionRateHz));
  leave();
  EXPECT_EQ(waiting_samples_, 0);
}

TEST_F(DecodeStream, TooManyMessagesEndIt) {
  start({.messages_per_s = 8, .max_backlog_s = 1});
  for (int i = 0; i < 8; ++i) say(kKeepalive);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(hear(), "PAUSED");
  clock_.advance_s(1);
  for (int i = 0; i < 8; ++i) say(kKeepalive);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(hear(), "PAUSED");
  say(kKeepalive);
  expect_end("more messages than 8 a second", 1008);
}

TEST_F(DecodeStream, TimesEndIt) {
  start({.idle_s = 5});
  say(kKeepalive);
  EXPECT_EQ(hear(), "PAUSED");
  clock_.advance_s(6);
  messages_->poke();
  expect_end("neither sound nor a keepalive has come for 5 s", 1008);
  start({.max_session_s = 5});
  say(kKeepalive);
  EXPECT_EQ(hear(), "PAUSED");
  clock_.advance_s(6);
  messages_->poke();
  expect_end("a stream takes at most 5 s", 1008);
}

TEST_F(DecodeStream, ItsTimeIsOverThoughThereIsSoundToHear) {
  recogniser_->still = true;
  start({.max_session_s = 5, .idle_s = 1000});
  say(beeping({0.1}, 2));
  EXPECT_TRUE(sound_waits(2 * kRecognitionRateHz));
  clock_.advance_s(6);
  recogniser_->still = false;
  expect_end("a stream takes at most 5 s", 1008);
  EXPECT_LT(*last_.find("metadata")->find("audio_length_seconds")->real(), 1.9);
}

// The engine may hold words until the end of the sound.
TEST_F(DecodeStream, NoWordIsLostWithTheTime) {
  recogniser_->tells_late = true;
  start({.idle_s = 5});
  say(beeping({0.1}, 0.5));
  say(kKeepalive);
  say(kKeepalive);
  EXPECT_EQ(hear(), "PAUSED");
  EXPECT_EQ(text("transcription"), "");
  EXPECT_TRUE(sound_waits(0));
  clock_.advance_s(6);
  messages_->poke();
  expect_end("neither sound nor a keepalive has come for 5 s", 1008);
  EXPECT_EQ(text("transcription"), "beep");
}

// The client's messages wait behind the answers that it does not read: the stream cannot know that nothing comes.
TEST_F(DecodeStream, ClientReadingNothingIsNotIdle) {
  std::string opaque;
  for (size_t i = 0; i < kMaxOpaqueCharacters; ++i) opaque += "\xF0\x9F\x98\x80";
  start({.opaque = opaque, .idle_s = 5});
  constexpr int kMany = 20;
  for (int i = 0; i < kMany; ++i) say(kKeepalive);
  const Stopwatch waited;
  while (messages_->has_room(1) && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
  clock_.advance_s(6);
  looks_around();
  std::vector<std::string> heard;
  for (int i = 0; i < kMany; ++i) heard.push_back(hear());
  EXPECT_THAT(heard, Each("PAUSED"));
}

TEST_F(DecodeStream, LeavingClientFreesTheSlot) {
  start();
  say(beeping({0.1}, 0.5));
  EXPECT_EQ(hear(), "ACTIVE");
  messages_->leave();
  EXPECT_TRUE(slots_are_busy(0));
}

// The engine is asked for what nobody waits for any more, and busy with others.
TEST_F(DecodeStream, LeavingClientWaitsForNoTurn) {
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start({}, &lines);
    recogniser_->still = true;
    say(beeping({0.1}, 0.5));
    ASSERT_TRUE(engine_is_asked());
    messages_->leave();
    EXPECT_TRUE(slots_are_busy(0));
  });
  EXPECT_THAT(log, HasSubstr("\"stopped\":\"cancelled\""));
  EXPECT_THAT(log, testing::Not(HasSubstr("\"error\"")));
}

TEST_F(DecodeStream, TheServersEndIsTheStreams) {
  start();
  say(beeping({0.1}, 0.5));
  messages_->end_when_idle();
  EXPECT_EQ(hear_until("COMPLETE").back(), "beep");
  EXPECT_EQ(text("message"), "the server is going down");
  EXPECT_EQ(closed_with(), 1001);
}

TEST_F(DecodeStream, LateReaderGetsAllWords) {
  std::vector<double> at_s;
  std::string words;
  for (int i = 0; i < 80; ++i) {
    at_s.push_back(0.4 * i + 0.1);
    words += i == 0 ? "beep" : " beep";
  }
  start({.max_backlog_s = 100});
  say(beeping(at_s, 0.4 * 80 + 0.1));
  say(kEnd);
  EXPECT_TRUE(slots_are_busy(0));                                   // it does not wait for its reader
  EXPECT_THAT(hear_until("COMPLETE"), ElementsAre("beep", words));  // and nothing that is old goes before the news
}

TEST_F(DecodeStream, FaultsOfTheEngine) {
  recogniser_->start_fault = "'/secret/place/model.bin' is broken";
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start({}, &lines);
    expect_end("the server failed at this; its log says why", 1011);
  });
  EXPECT_THAT(log, HasSubstr(R"("stopped":"error","error":"'/secret/place/model.bin' is broken")"));
  recogniser_->start_fault.clear();
  recogniser_->breaks = true;  // by what is no exception
  const std::string thrown = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start({}, &lines);
    say(beeping({0.1}, 0.5));
    expect_end("the server failed at this; its log says why", 1011);
  });
  EXPECT_THAT(thrown, HasSubstr(R"("stopped":"error","error":"an unknown exception was thrown)"));
}

// The stream has to wait for its reader before it can tell what was thrown: that is no silence of the engine.
TEST_F(DecodeStream, AnEngineThatThrowsIsNotWaitedForAnyMore) {
  recogniser_->breaks = true;
  start({.messages_per_s = 1e6, .max_session_s = 5});
  for (size_t i = 0; i < MessageStream::kMessages; ++i) say(kKeepalive);
  const Stopwatch waited;
  while (messages_->room() > 0 && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
  ASSERT_EQ(messages_->room(), 0U);
  clock_.advance_s(6);
  messages_->poke();
  EXPECT_TRUE(engine_is_asked());
  clock_.advance_s(3);
  EXPECT_FALSE(engine_is_silent());
  EXPECT_FALSE(messages_->ended());
  expect_end("the server failed at this; its log says why", 1011);
}

}  // namespace
}  // namespace syrinx::server::decode
