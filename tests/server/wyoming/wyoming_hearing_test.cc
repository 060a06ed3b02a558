// Transcription over Wyoming without sockets: waiting, the job's transcript, and the known languages.
// tests/e2e/wyoming_hearing_test.py has the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "audio/stream_resampler.h"
#include "base/clock.h"
#include "server/host/metrics.h"
#include "server/host/waiting_sound.h"
#include "server/service.h"
#include "server/wyoming/info.h"
#include "server/wyoming/session.h"
#include "server/wyoming/utterance_job.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/fake_recogniser.h"
#include "tests/server/host/recognition_job_fixture.h"

namespace syrinx::server::wyoming {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr PcmFormat kMono = {.rate_hz = 16000, .channels = 1, .bits = 16};

std::string s16(const std::vector<float>& sound) {
  std::string bytes;
  for (const float sample : sound) {
    const int value = static_cast<int>(sample * 32767);
    bytes += static_cast<char>(value & 0xff);
    bytes += static_cast<char>(value >> 8 & 0xff);
  }
  return bytes;
}

TEST(WyomingArrivingSound, IsTakenInOrderAndEnds) {
  ArrivingSound sound(kMono, 1);
  ASSERT_TRUE(sound.append("ab"));
  ASSERT_TRUE(sound.append(""));
  ASSERT_TRUE(sound.append("cd"));
  ArrivingSound::Part part;
  ASSERT_TRUE(sound.take(part));
  EXPECT_EQ(part.bytes, "abcd");
  std::thread later([&] {
    EXPECT_TRUE(sound.append("ef"));
    sound.finish();
  });
  ASSERT_TRUE(sound.take(part));
  later.join();
  EXPECT_EQ(part.bytes, "ef");
  EXPECT_FALSE(sound.take(part));
}

TEST(WyomingArrivingSound, KnowsWhenItCame) {
  ManualClock clock;
  ArrivingSound sound(kMono, 10, clock);
  for (const size_t bytes : {2, 8000, 2}) {  // the first of which goes with the second
    clock.advance_ns(1);
    ASSERT_TRUE(sound.append(std::string(bytes, 'a')));
  }
  clock.advance_ns(1);
  sound.finish();
  clock.advance_ns(1);
  sound.finish();
  EXPECT_EQ(sound.ended_ns(), 4);
  ArrivingSound::Part part;
  ASSERT_TRUE(sound.take(part));
  EXPECT_EQ(part.bytes.size(), 8002U);
  EXPECT_EQ(part.came_ns, 2);
  ASSERT_TRUE(sound.take(part));
  EXPECT_EQ(part.bytes.size(), 2U);
  EXPECT_EQ(part.came_ns, 3);
}

TEST(WyomingArrivingSound, CountsWaitingSamples) {
  Metrics metrics;
  std::atomic<int64_t> waiting{0};
  const auto counted =
      std::make_shared<WaitingSound>("m", JobReports{.metrics = metrics, .waiting_samples = &waiting}, system_clock());
  ArrivingSound sound({.rate_hz = 44100, .channels = 2, .bits = 16}, 10);
  ASSERT_TRUE(sound.append(std::string(4 * 441, 'a')));
  sound.count_by(counted);
  EXPECT_EQ(waiting, 160);
  for (int i = 0; i < 441; ++i) ASSERT_TRUE(sound.append("abcd"));  // each worth a third of a sample
  EXPECT_EQ(waiting, 320);
  sound.give_up();
  ASSERT_TRUE(sound.append(std::string(4 * 441, 'a')));  // of a client that does not know yet
  EXPECT_EQ(waiting, 320);
  EXPECT_TRUE(sound.has_room());
}

TEST(WyomingArrivingSound, RefusesPartialSamplesAndLongAudio) {
  ArrivingSound sound(kMono, 0.001);
  EXPECT_EQ(sound.append("abc").error().code, Code::kInvalidArgument);
  ASSERT_TRUE(sound.append(std::string(32, 'x')));
  EXPECT_EQ(sound.append("ab").error().code, Code::kLimitExceeded);
  ArrivingSound::Part part;
  sound.finish();
  ASSERT_TRUE(sound.take(part));
  EXPECT_EQ(part.bytes.size(), 32U);
}

TEST(WyomingArrivingSound, TellsWhenThereIsRoomAgain) {
  ArrivingSound sound(kMono, 1000);
  int told = 0;
  sound.on_room([&] { ++told; });
  ASSERT_TRUE(sound.append(std::string(ArrivingSound::kMaxWaitingBytes, 'x')));
  EXPECT_FALSE(sound.has_room());
  ArrivingSound::Part part;
  ASSERT_TRUE(sound.take(part));
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(sound.has_room());
}

TEST(WyomingArrivingSound, GivingUpEndsTheWait) {
  ArrivingSound sound(kMono, 1);
  std::thread slot([&] {
    ArrivingSound::Part part;
    EXPECT_FALSE(sound.take(part));
  });
  sound.give_up();
  slot.join();
}

class WyomingUtteranceJob : public RecognitionJobTest {
 protected:
  // The whole life of a job; what its reply says, event by event.
  std::vector<Event> run(const std::string& bytes, const std::string& language = {}, const PcmFormat& format = kMono,
                         size_t at_once = SIZE_MAX) {
    const auto sound = std::make_shared<ArrivingSound>(format, 100);
    for (size_t at = 0; at < bytes.size(); at += std::min(at_once, bytes.size() - at))
      EXPECT_TRUE(sound->append(bytes.substr(at, at_once)));
    sound->finish();
    run_job<UtteranceJob>(UtteranceOrder{.sound = sound, .language = language, .max_s = 100, .id = "1"});
    EventReader reader({});
    reader.push(sent_bytes(*reply_));
    std::vector<Event> events;
    for (auto event = reader.next(); event && *event; event = reader.next()) events.push_back(std::move(**event));
    return events;
  }
};

std::vector<std::string> types(const std::vector<Event>& events) {
  std::vector<std::string> types;
  for (const Event& event : events) types.push_back(event.type);
  return types;
}

TEST_F(WyomingUtteranceJob, TellsWordsInPartsAndAsAWhole) {
  const std::vector<Event> events = run(s16(beeps({0.5, 1.5}, 2, 16000)), "en");
  ASSERT_THAT(types(events),
              ElementsAre("transcript-start", "transcript-chunk", "transcript-chunk", "transcript", "transcript-stop"));
  EXPECT_EQ(*events[1].text("text") + *events[2].text("text"), "beep beep");
  EXPECT_EQ(*events[3].text("text"), "beep beep");
  EXPECT_EQ(*events[3].text("language"), "en");
  EXPECT_EQ(recogniser_->last_language, "en");
  EXPECT_EQ(reply_->pop_news().end, ReplyStream::End::kFinished);
  EXPECT_THAT(log_, HasSubstr("\"event\":\"transcription\""));
  EXPECT_THAT(log_, HasSubstr("\"audio_seconds\":2.0"));
  EXPECT_THAT(log_, Not(HasSubstr("beep")));
}

// For no audio, and for silence.
template <class Run>
void expect_nothing_is_heard(Run run) {
  for (const std::string& sound : {std::string(), s16(std::vector<float>(1600))}) {
    const std::vector<Event> events = run(sound);
    ASSERT_THAT(types(events), ElementsAre("transcript-start", "transcript", "transcript-stop"));
    EXPECT_EQ(*events[1].text("text"), "");
  }
}

TEST_F(WyomingUtteranceJob, SilenceAndNothingAreAnEmptyTranscript) {
  expect_nothing_is_heard([this](const std::string& sound) { return run(sound); });
}

TEST_F(WyomingUtteranceJob, AFaultIsAnErrorThatNamesNoFile) {
  recogniser_->throws_at = 2;
  const std::vector<Event> events = run(s16(beeps({0.5, 1.5}, 2, 16000)));
  EXPECT_EQ(events.back().type, "error");
  EXPECT_THAT(*events.back().text("text"), HasSubstr("out of memory"));
  EXPECT_EQ(reply_->pop_news().end, ReplyStream::End::kAborted);
}

TEST_F(WyomingUtteranceJob, CancelledJobIsNotTranscribed) {
  cancelled_ = true;
  const int before = recogniser_->calls;
  EXPECT_THAT(run(s16(beeps({0.5}, 2, 16000))), testing::IsEmpty());
  EXPECT_EQ(recogniser_->calls, before);
  EXPECT_THAT(log_, HasSubstr("\"stopped\":\"cancelled\""));
}

// With a model that transcribes streams as it does recordings.
class WyomingUtteranceStream : public WyomingUtteranceJob {
 protected:
  WyomingUtteranceStream() { recogniser_->streams_are_whole = true; }
  void TearDown() override { leave(); }
  // On a thread of its own, as on a slot.
  void start(const std::shared_ptr<ArrivingSound>& sound) {
    job_ = std::make_unique<UtteranceJob>(model_, UtteranceOrder{.sound = sound, .max_s = 100, .id = "1"},
                                          JobReports{.metrics = metrics_, .waiting_samples = &waiting_});
    reply_ = job_->reply();
    slot_ = std::thread([this] { run_whole(*job_); });
  }
  void leave() {
    if (!slot_.joinable()) return;
    reply_->cancel();
    slot_.join();
  }
  // Reads chunks until their text is as long as `words`.
  std::string read_until(const std::string& words) {
    const Stopwatch waited;
    EventReader reader({});
    std::string text;
    while (text.size() < words.size() && waited.elapsed_ms() < 60000) {
      reader.push(sent_bytes(*reply_));
      for (auto event = reader.next(); event && *event; event = reader.next())
        if ((*event)->type == "transcript-chunk") text += *(*event)->text("text");
      std::this_thread::yield();
    }
    return text;
  }

  std::atomic<int64_t> waiting_{0};
  std::unique_ptr<UtteranceJob> job_;
  std::thread slot_;
};

std::string chunks(const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events)
    if (event.type == "transcript-chunk") text += *event.text("text");
  return text;
}

TEST_F(WyomingUtteranceStream, WordsComeDuringSpeech) {
  const auto sound = std::make_shared<ArrivingSound>(kMono, 100);
  start(sound);
  ASSERT_TRUE(sound->append(s16(beeps({0.5}, 1, 16000))));
  EXPECT_EQ(read_until("beep"), "beep");
  ASSERT_TRUE(sound->append(s16(beeps({0}, 0.2, 16000))));
  EXPECT_EQ(read_until(" be"), " be");  // what is stable of it
  EXPECT_EQ(reply_->pop_news().end, ReplyStream::End::kOpen);
  sound->finish();
  slot_.join();
  const std::string last = sent_bytes(*reply_);
  EXPECT_THAT(last, HasSubstr(R"({"text":"ep"})"));
  EXPECT_THAT(last, HasSubstr(R"({"text":"beep beep",)"));
  EXPECT_EQ(reply_->pop_news().end, ReplyStream::End::kFinished);
  EXPECT_EQ(recogniser_->calls, 1);  // at the start, to warm it up
  EXPECT_EQ(waiting_, 0);
}

TEST_F(WyomingUtteranceStream, EventsAndAccountsAreThoseOfAWhole) {
  const std::vector<Event> events = run(s16(beeps({0.5, 1.5}, 2, 16000)), "en");
  EXPECT_EQ(types(events).front(), "transcript-start");
  EXPECT_EQ(*events.front().text("language"), "en");
  EXPECT_EQ(chunks(events), "beep beep");
  ASSERT_THAT(types(std::vector<Event>(events.end() - 2, events.end())), ElementsAre("transcript", "transcript-stop"));
  EXPECT_EQ(*events[events.size() - 2].text("text"), "beep beep");
  EXPECT_EQ(*events[events.size() - 2].text("language"), "en");
  EXPECT_EQ(reply_->pop_news().end, ReplyStream::End::kFinished);
  EXPECT_THAT(log_, HasSubstr("\"event\":\"transcription\""));
  EXPECT_THAT(log_, HasSubstr("\"audio_seconds\":2.0"));
  EXPECT_THAT(log_, Not(HasSubstr("\"first_word_ms\":null")));
  EXPECT_THAT(log_, Not(HasSubstr("beep")));
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr("syrinx_time_to_first_word_seconds_count{model=\"fake\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("syrinx_audio_seconds_total{model=\"fake\",direction=\"in\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("syrinx_queue_delay_seconds_count{model=\"fake\"} 3\n"));  // each second's, the end's
}

TEST_F(WyomingUtteranceStream, SilenceAndNothingAreAnEmptyTranscript) {
  expect_nothing_is_heard([this](const std::string& sound) { return run(sound); });
}

// However it comes, the recogniser is given the same samples.
TEST_F(WyomingUtteranceStream, AnyPartsAreTheSameSound) {
  for (const PcmFormat& format :
       {PcmFormat{.rate_hz = 44100, .channels = 2, .bits = 16}, PcmFormat{.rate_hz = 8000, .channels = 1, .bits = 8},
        PcmFormat{.rate_hz = 384000, .channels = 8, .bits = 32},
        PcmFormat{.rate_hz = 16000, .channels = 1, .bits = 24}}) {
    SCOPED_TRACE(format.rate_hz);
    const size_t frame = format.frame_bytes(), frames = static_cast<size_t>(format.rate_hz) * 23 / 100;
    std::string bytes;
    for (size_t i = 0; i < frames * frame; ++i) bytes += static_cast<char>(i * i % 251);
    std::vector<float> mixed, mono, expected;
    decode_pcm(std::as_bytes(std::span(bytes)), format, mixed);
    for (auto at = mixed.begin(); at != mixed.end(); at += format.channels)
      mono.push_back(std::accumulate(at, at + format.channels, 0.0f) / static_cast<float>(format.channels));
    auto resampler = StreamResampler::create(format.rate_hz, kRecognitionRateHz);
    resampler->push(mono, expected);
    resampler->finish(expected);
    for (const size_t at_once : {frame, 7 * frame, 1000 * frame, bytes.size()}) {
      recogniser_->samples.clear();
      run(bytes, "", format, at_once);
      EXPECT_EQ(recogniser_->samples, expected);
    }
  }
}

// More parts than the reply has room for, of which nothing is read before the end.
TEST_F(WyomingUtteranceStream, LateReaderGetsTheWholeText) {
  std::vector<double> at_s;
  std::string expected;
  for (size_t i = 0; i <= ReplyStream::kBlocks; ++i) {
    at_s.push_back(0.5 * static_cast<double>(i));
    expected += i == 0 ? "beep" : " beep";
  }
  const std::vector<Event> events = run(s16(beeps(at_s, at_s.back() + 1, 16000)));
  EXPECT_EQ(chunks(events), expected);
  EXPECT_EQ(*events[events.size() - 2].text("text"), expected);
}

TEST_F(WyomingUtteranceStream, LeavingClientEndsTheTranscription) {
  const auto sound = std::make_shared<ArrivingSound>(kMono, 100);
  start(sound);
  ASSERT_TRUE(sound->append(s16(beeps({0.5}, 1, 16000))));
  EXPECT_EQ(read_until("beep"), "beep");
  const auto wait_for_pushes = [this](int pushes) {
    const Stopwatch waited;
    while (recogniser_->pushes < pushes && waited.elapsed_ms() < 60000) std::this_thread::yield();
    EXPECT_EQ(recogniser_->pushes, pushes);
  };
  wait_for_pushes(10);
  recogniser_->still = true;
  ASSERT_TRUE(sound->append(s16(beeps({0.5}, 10, 16000))));
  wait_for_pushes(11);
  reply_->cancel();
  recogniser_->still = false;
  slot_.join();
  EXPECT_EQ(recogniser_->pushes, 11);
  EXPECT_EQ(waiting_, 0);
  ASSERT_TRUE(sound->append("ab"));  // which the connection may have had already
  EXPECT_EQ(waiting_, 0);
}

TEST_F(WyomingUtteranceStream, AFaultIsAnErrorThatNamesNoFileWhileItIsBeingSaid) {
  recogniser_->start_fault = "the file /secret/place/model.bin is broken";
  const auto sound = std::make_shared<ArrivingSound>(kMono, 100);
  start(sound);
  slot_.join();  // though there is no end
  const std::string sent = sent_bytes(*reply_);
  EXPECT_THAT(sent, HasSubstr("\"type\":\"error\""));
  EXPECT_THAT(sent, Not(HasSubstr("/secret/place")));
  EXPECT_EQ(reply_->pop_news().end, ReplyStream::End::kAborted);
}

TEST_F(WyomingUtteranceJob, InfoTellsOfStreamedTranscripts) {
  for (const bool are_whole : {false, true}) {
    recogniser_->streams_are_whole = are_whole;
    EXPECT_THAT(info(nullptr, model_.get()).data.dump(),
                HasSubstr(fmt::format("\"supports_transcript_streaming\":{}", are_whole)));
  }
}

TEST_F(WyomingUtteranceJob, ALanguageIsOneOfTheModels) {
  EXPECT_THAT(model_->languages(), ElementsAre("en", "de"));
  EXPECT_EQ(*model_->language_called("de_AT"), "de");
  const auto unknown = model_->language_called("tlh");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, "language_not_found");
  recogniser_->known_languages.clear();
  SetUp();
  EXPECT_THAT(model_->language_called("en").error().message, HasSubstr("list them in recognition_languages"));
  settings_.recognition_languages = {"fr"};
  SetUp();
  EXPECT_THAT(model_->languages(), ElementsAre("fr"));
  EXPECT_EQ(*model_->language_called("fr-CA"), "");  // it cannot be told
  EXPECT_FALSE(model_->language_called("en"));
  recogniser_->known_languages = {"en"};
  SetUp();
  EXPECT_EQ(model_->language_called("fr-CA").value_or("refused"), "");
  EXPECT_EQ(model_->language_called("en-GB").value_or("refused"),
            "en");  // what the operator lists comes to the model's own
}

TEST(WyomingSession, SoundNeedsAModel) {
  Service service({}, *ApiKeys::load({}), nullptr);
  service.ready(nullptr);
  Description description;
  for (const char* type : {"transcribe", "audio-start", "audio-chunk"}) {
    Session session(service, description);
    Event event{.type = type, .payload = "ab"};
    for (const auto& [name, value] : {std::pair("rate", 16000), std::pair("width", 2), std::pair("channels", 1)})
      event.data.set(name, value);
    const Session::Said said = session.take(event);
    EXPECT_TRUE(said.closes) << type;
    EXPECT_THAT(said.bytes, HasSubstr("no model of this server recognises speech")) << type;
    EXPECT_FALSE(session.owes());
  }
}

}  // namespace
}  // namespace syrinx::server::wyoming
