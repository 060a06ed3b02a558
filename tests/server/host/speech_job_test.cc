// Speeches that fail: what the client is told, what the log is told, and how the answer ends.
#include "server/host/speech_job.h"
#include "engine/families/pocket_tts/pocket_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <new>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "server/openai/http_speech_answer.h"
#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/server/host/acting_engine.h"
#include "tests/server/host/job_run.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kCheckpoint = "/secret/place/model.yaml";

class SpeechJobTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.path() + "/voices");
    for (const char* voice : {"ann", "bob"}) std::ofstream(folder_.path() + "/voices/" + voice + ".safetensors") << "x";
    SpeechFiles files;
    files.family = &pocket_tts_family();
    files.checkpoint = kCheckpoint;
    files.voices = folder_.path();
    const auto made = SpeechModel::of({}, files, engine_);
    ASSERT_TRUE(made) << made.error().message;
    model_ = *made;
  }

  // The whole life of a job; what it has sent is in sent_.
  ReplyStream::News run(SpeechRequest request, bool faults_alone = false) {
    request.input = "Hello.";
    request.format = AudioFormat::kPcm;
    log_ = logged(folder_.path() + "/log", [&](RequestLog& log) {
      SpeechJob job(model_, {.request = request, .voice = "ann", .id = "1"},
                    std::make_unique<HttpSpeechAnswer>(request),
                    {.metrics = metrics_, .log = &log, .faults_alone = faults_alone});
      reply_ = job.reply();
      if (on_news_) reply_->on_news(on_news_);
      SlotWatch watch(system_clock());
      job.run(watch);
      noted_s_ = watch.audio_s();
      job.end();
    });
    sent_ = sent_bytes(*reply_);
    return reply_->pop_news();
  }

  const TempFolder folder_;
  const std::shared_ptr<ActingEngine> engine_ = std::make_shared<ActingEngine>();
  std::shared_ptr<const SpeechModel> model_;
  Metrics metrics_;
  std::function<void()> on_news_;
  std::shared_ptr<ReplyStream> reply_;
  std::string sent_, log_;
  double noted_s_ = 0;  // by the watch of the slot
};

SpeechRequest events() {
  SpeechRequest request;
  request.events = true;
  return request;
}

Status damaged() { return fail(Code::kDataLoss, "the weights of '{}' are damaged", kCheckpoint); }

TEST_F(SpeechJobTest, SuccessEndsTheAnswer) {
  const ReplyStream::News news = run({});
  EXPECT_EQ(news.end, ReplyStream::End::kFinished);
  EXPECT_EQ(sent_.size(), 3840U);
  EXPECT_THAT(log_, HasSubstr("\"stopped\":\"eos\""));
  EXPECT_THAT(log_, Not(HasSubstr("null")));
  EXPECT_THAT(log_, Not(HasSubstr("\"error\"")));
  run({}, /*faults_alone=*/true);
  EXPECT_EQ(log_, "");
}

TEST_F(SpeechJobTest, VolumeScalesAndClipsSamples) {
  const auto first_sample = [this](double volume) {
    SpeechRequest request;
    request.volume = volume;
    run(request);
    return static_cast<int16_t>(static_cast<uint8_t>(sent_.at(0)) | static_cast<uint8_t>(sent_.at(1)) << 8);
  };
  const int usual = first_sample(1);
  EXPECT_NEAR(usual, 3277, 2);
  EXPECT_NEAR(first_sample(0.5), usual / 2.0, 2);
  EXPECT_NEAR(first_sample(0), 0, 1);
  EXPECT_EQ(first_sample(10), 32767);
}

TEST_F(SpeechJobTest, AnswerInOnePieceHasALimit) {
  engine_->act = {.chunks = 18, .chunk_samples = 1920000};  // 69 MB
  SpeechRequest request;
  request.whole = true;
  const ReplyStream::News news = run(request);
  EXPECT_EQ(news.head->status, 413);
  EXPECT_THAT(news.head->body, HasSubstr("longer than 64 MB"));
  EXPECT_THAT(news.head->body, HasSubstr("leave 'stream' out"));
}

TEST_F(SpeechJobTest, AFaultBehindTheFirstByteBreaksTheAnswerOffAndIsLogged) {
  engine_->act.end = damaged;
  const ReplyStream::News news = run({}, /*faults_alone=*/true);
  EXPECT_EQ(news.end, ReplyStream::End::kAborted);
  EXPECT_EQ(news.head->status, 200);
  EXPECT_THAT(log_, HasSubstr("\"error\":\"the weights of '/secret/place/model.yaml' are damaged\""));
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_generation_stopped_total{reason=\"error\"} 1\n"));
}

TEST_F(SpeechJobTest, AFaultBeforeTheFirstByteIsAStatusThatNamesNoFile) {
  engine_->act = {.chunks = 0, .end = damaged};
  const ReplyStream::News news = run({});
  EXPECT_EQ(news.end, ReplyStream::End::kFinished);
  EXPECT_EQ(news.head->status, 500);
  EXPECT_THAT(news.head->body, Not(HasSubstr("secret")));
  EXPECT_THAT(news.head->body, HasSubstr("its log says why"));
  EXPECT_THAT(log_, HasSubstr("secret"));
}

TEST_F(SpeechJobTest, FilesAreNotNamedWhateverTheErrorSays) {
  for (const Code code : {Code::kUnsupported, Code::kInvalidArgument, Code::kNotFound}) {
    engine_->act = {.chunks = 0,
                    .end = [&] { return fail(code, "'{}/voices/ann.safetensors' is bad", folder_.path()); }};
    const ReplyStream::News news = run({});
    EXPECT_EQ(news.head->status, 500);
    EXPECT_THAT(news.head->body, Not(HasSubstr(folder_.path())));
  }
}

TEST_F(SpeechJobTest, RequestFaultIsReportedNotLogged) {
  engine_->act = {.chunks = 0, .end = [] { return fail(Code::kInvalidArgument, "there is nothing to say"); }};
  const ReplyStream::News news = run({}, /*faults_alone=*/true);
  EXPECT_EQ(news.head->status, 400);
  EXPECT_THAT(news.head->body, HasSubstr("there is nothing to say"));
  EXPECT_EQ(log_, "");
  EXPECT_EQ(run({}).head->status, 400);
  EXPECT_THAT(log_, HasSubstr("\"stopped\":\"refused\""));
  EXPECT_THAT(log_, HasSubstr("\"first_audio_ms\":null,\"engine_first_audio_ms\":null"));
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("syrinx_generation_stopped_total{")));
}

TEST_F(SpeechJobTest, WantOfMemoryIsNotTheRequestsFault) {
  engine_->act = {.chunks = 0, .end = []() -> Status { throw std::bad_alloc(); }};
  EXPECT_EQ(run({}).head->status, 503);
  engine_->before = [] { throw std::bad_alloc(); };
  const ReplyStream::News news = run({});
  EXPECT_EQ(news.head->status, 503);
  EXPECT_THAT(news.head->headers, testing::Contains(testing::Field(&HttpHeader::name, "Retry-After")));
}

TEST_F(SpeechJobTest, EventsTellTheStopReason) {
  for (const FinishReason reason : kFinishReasons) {
    const char* const stopped = finish_reason_name(reason);
    engine_->act.finished = {};
    engine_->act.finished.add(FinishReason::kSpoken, 2);
    engine_->act.finished.add(reason);
    run(events());
    EXPECT_THAT(sent_, HasSubstr(fmt::format(R"("finish_reason":"{}","usage":{{"input_tokens":6,"output_tokens":1,)"
                                             R"("total_tokens":7,"stopped":"{}"}})",
                                             stopped, stopped)));
    EXPECT_THAT(log_, HasSubstr(fmt::format(R"("stopped":"{}")", stopped)));
    if (reason == FinishReason::kSpoken) continue;
    EXPECT_THAT(metrics_.text(), HasSubstr(fmt::format("syrinx_speech_pieces_cut_total{{model=\"{}\",reason=\"{}\"}} 1",
                                                       model_->id(), stopped)));
  }
  EXPECT_THAT(log_, HasSubstr(R"("cut_pieces":1)"));
  EXPECT_THAT(log_, Not(HasSubstr("retried_pieces")));
}

TEST_F(SpeechJobTest, UnevenPiecesAreLogged) {
  run({});
  EXPECT_THAT(log_, Not(HasSubstr("uneven")));
  engine_->act.spread = {.pieces = 9, .uneven_rate = 1, .uneven_loudness = 2};
  run({});
  EXPECT_THAT(log_, HasSubstr(R"("uneven_rate_pieces":1,"uneven_loudness_pieces":2)"));
}

TEST_F(SpeechJobTest, RetriedPiecesAreLoggedAndCounted) {
  engine_->act.retried_pieces = 2;
  run({});
  EXPECT_THAT(log_, HasSubstr(R"("retried_pieces":2)"));
  EXPECT_THAT(metrics_.text(),
              HasSubstr(fmt::format("syrinx_speech_pieces_retried_total{{model=\"{}\"}} 2", model_->id())));
}

TEST_F(SpeechJobTest, EventsEndWithAnErrorEventWhateverEndsThem) {
  engine_->act = {.chunks = 2, .end = damaged};
  EXPECT_EQ(run(events()).end, ReplyStream::End::kFinished);
  EXPECT_THAT(sent_, HasSubstr("event: error\ndata: {\"error\":"));
  EXPECT_THAT(sent_, Not(HasSubstr("speech.audio.done")));

  engine_->act.end = [] { return Status(); };
  int told = 0;
  on_news_ = [&] {  // of the head, which survives it, and of the first sound
    if (++told <= 2) throw std::runtime_error("a library's");
  };
  EXPECT_EQ(run(events()).end, ReplyStream::End::kFinished);
  EXPECT_THAT(sent_, HasSubstr("event: error\ndata: {\"error\":"));
  EXPECT_THAT(log_, HasSubstr("a library's"));
}

TEST_F(SpeechJobTest, LeavingClientIsNoFault) {
  engine_->act.end = [this] {
    reply_->cancel();
    return damaged();
  };
  run(events());
  EXPECT_THAT(log_, HasSubstr("\"stopped\":\"cancelled\""));
  EXPECT_THAT(log_, Not(HasSubstr("\"error\"")));
}

// All that was made counts, sent or not: its steps count, too.
TEST_F(SpeechJobTest, CancelledAudioIsNoted) {
  engine_->act = {.chunks = 3, .end = [this] {
                    reply_->cancel();
                    return Status();
                  }};
  run({});
  EXPECT_NEAR(noted_s_, 3 * 0.08, 1e-9);
}

TEST_F(SpeechJobTest, AVoiceThatHasGoneSinceItWasFoundIsNotThere) {
  engine_->act = {.chunks = 0, .end = [] { return fail(Code::kNotFound, "no voice 'gone' in /secret/place"); }};
  SpeechRequest request;
  request.voice = "gone";
  const ReplyStream::News news = run(request);
  EXPECT_EQ(news.head->status, 404);
  EXPECT_THAT(news.head->body, HasSubstr("voice_not_found"));
  EXPECT_THAT(news.head->body, Not(HasSubstr("secret")));
}

TEST_F(SpeechJobTest, WithoutADefaultTheFirstVoiceSpeaks) {
  EXPECT_EQ(engine_->asked_for, (std::vector<std::string>{"ann"}));  // to warm up
  EXPECT_EQ(model_->find_voice(""), "ann");
  EXPECT_EQ(model_->find_voice("alloy"), "ann");
  EXPECT_EQ(model_->find_voice("bob"), "bob");
  EXPECT_EQ(model_->find_voice("carl").error().status, 404);
}

// On a slot of its own, asked for as a client does it.
class LeavingTest : public SpeechJobTest {
 protected:
  void SetUp() override {
    SpeechJobTest::SetUp();
    service_.emplace(settings_, *ApiKeys::load({}), nullptr);
    ASSERT_TRUE(service_->start());
    service_->ready(model_);
  }

  // Has a text without an end spoken, leaves while that step is under way, and waits until the answer has ended: how
  // many steps have begun by then.  `chunk_samples` are those of a step.
  size_t steps_until_the_end(size_t step, size_t chunk_samples) {
    std::atomic<size_t> begun{0};
    std::counting_semaphore<> in_step{0}, left{0}, news{0};
    engine_->act = {.chunks = SIZE_MAX, .chunk_samples = chunk_samples, .step = [&] {
                      if (++begun != step) return;
                      in_step.release();
                      left.acquire();
                    }};
    HttpRequest request;
    request.method = "POST";
    request.path = "/v1/audio/speech";
    request.body = R"({"input": "Hello.", "response_format": "pcm"})";
    const auto reply = service_->answer(request).stream;
    reply->on_news([&] { news.release(); });
    in_step.acquire();
    EXPECT_FALSE(has_free_slot());
    reply->cancel();
    left.release();
    while (reply->pop_news().end == ReplyStream::End::kOpen) news.acquire();
    reply->on_news({});  // waits for a call that is under way
    EXPECT_TRUE(has_free_slot());
    return begun;
  }

  bool has_free_slot() {
    HttpRequest request;
    request.method = "GET";
    request.path = "/ready";
    request.query = "slots=speech";
    return service_->answer(request).status == 200;
  }

 private:
  static Settings one_slot() {
    Settings settings;
    settings.speech_slots = 1;
    return settings;
  }
  const Settings settings_ = one_slot();
  std::optional<Service> service_;
};

// The step in progress when the client left is the last.
TEST_F(LeavingTest, TheSlotIsFreeBehindTheStepThatIsUnderWay) {
  for (const size_t step : {1, 2, 3, 10}) EXPECT_EQ(steps_until_the_end(step, /*chunk_samples=*/480), step);
}

// The first chunk is more than the answer's queue holds, two more wait for it, and the engine holds the fourth.
TEST_F(LeavingTest, UnreadAnswerGetsNoFurtherStep) {
  EXPECT_EQ(steps_until_the_end(4, ReplyStream::kBlocks * ReplyStream::kBlockBytes), 4U);
}

TEST_F(SpeechJobTest, MetricsKnowNoModelBeforeThereIsOne) {
  Service service({}, *ApiKeys::load({}), nullptr);
  HttpRequest metrics;
  metrics.method = "GET";
  metrics.path = "/metrics";
  EXPECT_THAT(service.answer(metrics).body, Not(HasSubstr("syrinx_slots")));
  service.ready(model_);
  const std::string page = service.answer(metrics).body;
  EXPECT_THAT(page, HasSubstr("syrinx_slots{model=\"kokoro\",state=\"free\"} 4\n"));
  EXPECT_THAT(page, Not(HasSubstr("model=\"\"")));
}

// A supervisor asks /health: an engine that gives no output must be restarted, and no other.
TEST_F(SpeechJobTest, HealthTellsOfAnEngineThatStandsStillForTooLong) {
  constexpr double kNever = 60'000;
  for (const double stuck_after_s : {0.01, kNever}) {
    std::promise<void> still, go;  // before the service, which waits for the speech
    engine_->act = {.chunks = 0, .end = [&] {
                      still.set_value();
                      go.get_future().wait();
                      return Status();
                    }};
    Settings settings;
    settings.recognition_model = "";
    settings.max_sessions = 1;
    settings.stuck_after_s = stuck_after_s;
    Service service(settings, *ApiKeys::load({}), nullptr);
    ASSERT_TRUE(service.start());
    service.ready(model_);
    const auto health = [&] {
      HttpRequest request;
      request.method = "GET";
      request.path = "/health";
      return service.answer(request);
    };
    const auto becomes = [&](int status) {
      for (const Stopwatch watch; health().status != status && watch.elapsed_ms() < 60'000;)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return health().status == status;
    };
    EXPECT_EQ(health().status, 200);
    SpeechOrder order;
    order.request.input = "Hello.";
    EXPECT_TRUE(service.start_speech(order, std::make_unique<HttpSpeechAnswer>(order.request)));
    still.get_future().wait();
    EXPECT_TRUE(becomes(stuck_after_s == kNever ? 200 : 503));
    if (stuck_after_s != kNever) {
      EXPECT_THAT(health().body, HasSubstr("\"code\":\"stuck\""));
      EXPECT_THAT(health().body, HasSubstr("restart the server"));
    }
    go.set_value();
    EXPECT_TRUE(becomes(200));
  }
}

}  // namespace
}  // namespace syrinx::server
