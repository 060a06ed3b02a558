// The transducer profile's routes, from the header to the slot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "engine/families/whisper/whisper_family.h"
#include "server/decode/request.h"
#include "server/http/message_stream.h"
#include "server/service.h"
#include "tests/engine/recognition/fake_recogniser.h"

namespace syrinx::server::decode {
namespace {

using testing::HasSubstr;

constexpr double kPatienceMs = 60000;
const std::string kEnd(1, '\x00');

class DecodeRoute : public testing::Test {
 protected:
  void SetUp() override {
    settings_.speech_model = "";
    settings_.recognition_model = "fake";
    settings_.recognition_slots = 1;
    service_.emplace(settings_, *ApiKeys::load({}), nullptr);
    const auto model =
        RecognitionModel::of(settings_, {.family = &whisper_family()}, std::make_shared<FakeRecogniser>());
    ASSERT_TRUE(model) << model.error().message;
    model_ = *model;
    ASSERT_TRUE(service_->start());
  }
  HttpReply ask(const std::string& model, const std::string& query = "", const char* upgrade = "websocket") {
    HttpRequest request;
    request.method = "GET";
    request.path = "/v2/decode/stream/" + model;
    request.query = query;
    request.headers = {{"Host", "localhost"},
                       {"Upgrade", upgrade},
                       {"Sec-WebSocket-Version", "13"},
                       {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
    EXPECT_EQ(service_->admit(request).refusal, nullptr);
    return service_->answer(request);
  }
  void expect_refused(int status, const char* words, const HttpReply& reply) {
    EXPECT_EQ(reply.status, status);
    ASSERT_NE(reply.error, nullptr);
    EXPECT_THAT(decode::error_body(*reply.error), HasSubstr(words));
  }
  Settings settings_;
  std::shared_ptr<const RecognitionModel> model_;
  std::optional<Service> service_;
};

TEST_F(DecodeRoute, RefusesInItsOwnForm) {
  expect_refused(503, R"("error_type":"loading")", ask("fake"));
  service_->ready(nullptr, model_);
  expect_refused(426, R"("error":"this is a WebSocket)", ask("fake", "", ""));
  expect_refused(404, R"("error_type":"model_not_found")", ask("other"));
  expect_refused(404, R"("error_type":"model_not_found")", ask(""));
  expect_refused(404, "there is no model 'f%4'", ask("f%4"));
  expect_refused(400, "'opaque' of the query must be UTF-8", ask("fake", "opaque=%FF"));
  expect_refused(400, "'opaque' of the query must be UTF-8", ask("fake", "opaque=a%2"));
  expect_refused(400, "'opaque' has 10001 characters", ask("fake", "opaque=" + std::string(10001, 'x')));
  HttpRequest foreign;
  foreign.method = "GET";
  foreign.path = "/v2/decode/stream/fake";
  foreign.headers = {{"Host", "localhost"}, {"Origin", "https://evil.example"}};
  HttpService::Admission refused = service_->admit(foreign);
  EXPECT_THAT(refused.error_form(*refused.refusal->error), HasSubstr(R"("error_type":"origin_not_allowed")"));
  foreign.method = "POST";
  foreign.headers = {{"Host", "localhost"}};
  refused = service_->admit(foreign);
  EXPECT_EQ(refused.refusal->status, 405);
  EXPECT_THAT(refused.error_form(*refused.refusal->error),
              testing::StartsWith("{\"error\":\"/v2/decode/stream/{model}"));
}

TEST_F(DecodeRoute, TakesASlotAtTheHandshake) {
  service_->ready(nullptr, model_);
  const HttpReply first = ask("%66ake", "opaque=a+%C3%A9%26");
  ASSERT_NE(first.messages, nullptr);
  const HttpReply second = ask("fake");
  expect_refused(503, R"("error_type":"no_free_slot")", second);
  EXPECT_EQ(second.headers.front().name, "Retry-After");
  first.messages->deliver({.bytes = kEnd, .is_text = false});
  MessageStream::Message message;
  const Stopwatch waited;
  while (!first.messages->try_pop(message) && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
  EXPECT_THAT(message.bytes, HasSubstr("\"opaque\":\"a \xC3\xA9&\""));
  while (!first.messages->ended() && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
  const HttpReply third = ask("whisper-1");  // who hears of the end finds the slot free
  ASSERT_NE(third.messages, nullptr);
  third.messages->leave();
  service_->drain();
  expect_refused(503, R"("error_type":"draining")", ask("fake"));
}

}  // namespace
}  // namespace syrinx::server::decode
