// Recordings that hold all slots that they may have: whoever speaks is heard all the same, and a further recording is
// refused, its sound unsent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "audio/wav.h"
#include "base/clock.h"
#include "engine/families/whisper/whisper_family.h"
#include "server/http/message_stream.h"
#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/recognition/noise_detector.h"
#include "tests/server/realtime/hearing_fixture.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;

constexpr const char *kBytes = "application/octet-stream", *kForm = "multipart/form-data; boundary=b";
constexpr size_t kSlots = 4;

class LiveSlots : public testing::Test {
 protected:
  void SetUp() override {
    settings_.speech_model = "";
    settings_.recognition_model = "fake";
    settings_.recognition_slots = kSlots;
    recogniser_->vad = *silero::SileroVad::load(write_noise_detector(folder_.path() + "/vad.bin"));
    service_.emplace(settings_, *ApiKeys::load({}), nullptr);
    const auto model = RecognitionModel::of(settings_, {.family = &whisper_family()}, recogniser_);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_TRUE(service_->start());
    service_->ready(nullptr, *model);
  }
  void TearDown() override {
    recogniser_->holds = false;
    if (client_) client_->leave();
    for (const auto& stream : streams_) stream->leave();
  }

  static HttpRequest head(const char* method, const std::string& path, const char* type = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.headers = {{"Host", "localhost"}, {"Content-Type", type}, {"Content-Length", "100"}};
    return request;
  }
  static HttpRequest recording(const std::string& path) {
    const bool is_batch = path.starts_with("/v2/");
    HttpRequest request = head("POST", path, is_batch ? kBytes : kForm);
    const std::string sound(3200, '\0');
    const auto header = wav_header(kRecognitionRateHz, sound.size());
    if (is_batch)
      request.body = sound;
    else
      request.body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n" +
                     std::string(reinterpret_cast<const char*>(header.data()), header.size()) + sound + "\r\n--b--\r\n";
    return request;
  }
  HttpReply ask(HttpRequest request) { return service_->answer(request); }
  HttpReply open(const std::string& path, const std::string& query = "") {
    HttpRequest request = head("GET", path);
    request.query = query;
    request.headers.push_back({"Upgrade", "websocket"});
    request.headers.push_back({"Sec-WebSocket-Version", "13"});
    request.headers.push_back({"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="});
    return ask(request);
  }
  int ready(const std::string& query) {
    HttpRequest request = head("GET", "/ready");
    request.query = query;
    const HttpReply reply = ask(request);
    if (reply.status == 200) told_ = *parse_json(reply.body, "ready");
    return reply.status;
  }
  int64_t told(const char* count) const { return *told_.find("recognition")->find(count)->whole(); }
  void wait_for(const std::function<bool()>& is_so) {
    const Stopwatch waited;
    while (!is_so()) {
      ASSERT_LT(waited.elapsed_ms(), realtime::kPatienceMs);
      std::this_thread::yield();
    }
  }
  // Until a message of that type comes.
  void hear_until(const std::string& type) {
    const Stopwatch waited;
    for (MessageStream::Message message; waited.elapsed_ms() < realtime::kPatienceMs; std::this_thread::yield())
      if (client_->try_pop(message) && message.bytes.find("\"type\":\"" + type + "\"") != std::string::npos) return;
    ADD_FAILURE() << type << " has not come";
  }
  // A turn that a client commits.
  void speak_and_be_heard() {
    if (client_ == nullptr) client_ = open("/v1/realtime", "intent=transcription").messages;
    ASSERT_NE(client_, nullptr);
    for (const std::string& event :
         {R"({"type":"session.update","session":{"audio":{"input":)" + std::string(realtime::kManual) + "}}}",
          R"({"type":"input_audio_buffer.append","audio":")" + realtime::pcm_base64(realtime::noise(0.5)) + "\"}",
          std::string(realtime::kCommit)})
      client_->deliver({.bytes = event});
    hear_until(realtime::kCompleted);
  }

  const TempFolder folder_;
  const std::shared_ptr<FakeRecogniser> recogniser_ = std::make_shared<FakeRecogniser>();
  Settings settings_;
  Json told_;
  std::shared_ptr<MessageStream> client_;
  std::vector<std::shared_ptr<MessageStream>> streams_;
  std::optional<Service> service_;
};

TEST_F(LiveSlots, LiveSpeechFindsSlotBesideRecordings) {
  EXPECT_EQ(service_->modules().first(ModuleKind::kRecognition)->slots.size(SlotPool::Work::kBatch), kSlots - 1);
  recogniser_->holds = true;
  const std::vector<std::string> routes = {"/v1/audio/transcriptions", "/v1/audio/translations",
                                           "/v2/decode/batch/fake"};
  std::vector<std::shared_ptr<ReplyStream>> recordings;
  for (const std::string& route : routes) {
    EXPECT_EQ(ready("slots=recognition"), 200);
    recordings.push_back(ask(recording(route)).stream);
    ASSERT_NE(recordings.back(), nullptr) << route;
  }
  wait_for([&] { return recogniser_->held == static_cast<int>(routes.size()); });

  for (const std::string& route : routes) {
    const HttpService::Admission early = service_->admit(recording(route));
    ASSERT_NE(early.refusal, nullptr) << route;
    for (const HttpReply& refused : {*early.refusal, ask(recording(route))}) {
      EXPECT_EQ(refused.status, 503);
      ASSERT_NE(refused.error, nullptr);
      EXPECT_EQ(refused.error->code, "no_free_slot");
      EXPECT_EQ(refused.error->retry_after_s, 1);
      EXPECT_THAT(refused.error->message, HasSubstr("all 3 slots for recordings are busy"));
    }
  }
  EXPECT_EQ(ready("slots=recognition"), 503);  // for whoever has a recording to send
  EXPECT_EQ(ready("slots=1"), 200);
  EXPECT_EQ(told("slots"), 4);
  EXPECT_EQ(told("free_slots"), 1);
  EXPECT_EQ(told("free_for_recordings"), 0);
  const std::string page = ask(head("GET", "/metrics")).body;
  EXPECT_THAT(page, HasSubstr("syrinx_rejected_total{reason=\"no_free_slot\"} 6\n"));
  EXPECT_THAT(page, HasSubstr("syrinx_slots{model=\"fake\",state=\"free\"} 1\n"));

  speak_and_be_heard();
  wait_for([&] { return ready("") == 200 && told("free_slots") == 1; });
  speak_and_be_heard();

  // One whose client goes leaves at once, and not behind the others.
  recordings.front()->cancel();
  wait_for([&] { return ready("slots=recognition") == 200; });
  EXPECT_EQ(recogniser_->held, 2);
  EXPECT_EQ(service_->admit(recording(routes.front())).refusal, nullptr);

  recogniser_->holds = false;
  wait_for([&] { return ready("slots=recognition") == 200 && told("free_for_recordings") == 3; });
}

// Which keep no recording out for longer than somebody speaks, and have nobody behind them who could keep them out.
TEST_F(LiveSlots, LiveSoundMayHaveThemAll) {
  for (size_t i = 0; i < kSlots; ++i) {
    const HttpReply stream = open("/v2/decode/stream/fake");
    ASSERT_NE(stream.messages, nullptr) << i;
    streams_.push_back(stream.messages);
  }
  EXPECT_EQ(open("/v2/decode/stream/fake").status, 503);
  EXPECT_EQ(ready("slots=recognition"), 503);
  EXPECT_EQ(service_->admit(recording("/v2/decode/batch/fake")).refusal->status, 503);
  streams_.back()->leave();
  wait_for([&] { return ready("slots=recognition") == 200; });
  EXPECT_EQ(told("free_for_recordings"), 1);
}

}  // namespace
}  // namespace syrinx::server
