// The route of realtime sessions: what the request that opens one says, and which models it may name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/families/whisper/whisper_family.h"
#include "server/http/message_stream.h"
#include "server/realtime/handshake.h"
#include "server/realtime/reply_source.h"
#include "server/service.h"
#include "tests/engine/recognition/fake_recogniser.h"

namespace syrinx::server::realtime {
namespace {

using testing::HasSubstr;

HttpRequest request_with(const std::string& name, const std::string& value) {
  HttpRequest request;
  request.query = "model=m&x=y";
  request.headers = {{name, value}};
  return request;
}

TEST(HandshakeTest, ReadsDialectProtocolAndKey) {
  const auto read = [](const std::string& name, const std::string& value, std::string_view setting = "auto") {
    return read_handshake(request_with(name, value), setting);
  };
  EXPECT_EQ(read("OpenAI-Beta", "realtime=v1").dialect, Dialect::kBeta);
  EXPECT_EQ(read("OpenAI-Beta", "realtime=v1", "released").dialect, Dialect::kReleased);
  EXPECT_EQ(read("Host", "x", "beta").dialect, Dialect::kBeta);
  const auto offered = read("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.k1,openai-beta.realtime-v1");
  EXPECT_EQ(offered.dialect, Dialect::kBeta);
  EXPECT_EQ(offered.protocol, "realtime");
  EXPECT_EQ(offered.model, "m");
  // A browser fails a connection that answers with none of what it has offered; a key is never answered.
  const auto beta = read("Sec-WebSocket-Protocol", "openai-insecure-api-key.k1, openai-beta.realtime-v1");
  EXPECT_EQ(beta.dialect, Dialect::kBeta);
  EXPECT_EQ(beta.protocol, "openai-beta.realtime-v1");
  EXPECT_EQ(read("Sec-WebSocket-Protocol", "openai-insecure-api-key.k1, syrinx-api-key-base64url.YQ").protocol, "");
  EXPECT_EQ(offered_key(request_with("Sec-WebSocket-Protocol", "a, openai-insecure-api-key.k1 ,b")), "k1");
  EXPECT_EQ(offered_key(request_with("Sec-WebSocket-Protocol", "a,,")), "");
  const auto encoded = [](const std::string& key) {
    return offered_key(request_with("Sec-WebSocket-Protocol", "realtime, syrinx-api-key-base64url." + key));
  };
  EXPECT_EQ(encoded("YT8-PS8rLA"), "a?>=/+,");
  EXPECT_EQ(encoded("Pz8_"), "???");
  EXPECT_EQ(encoded("YQ"), "a");
  EXPECT_EQ(encoded("Y"), "");  // no base64
  EXPECT_EQ(encoded(""), "");
  EXPECT_TRUE(is_realtime_model("gpt-4o-realtime-preview"));
  EXPECT_FALSE(is_realtime_model("gpt-9"));
}

TEST(HandshakeTest, RefusalTellsTheReason) {
  HttpRequest request = request_with("Upgrade", "WebSocket");
  const auto fault = [&] { return realtime::handshake_fault(request).value_or(HttpError{.status = 0, .message = {}}); };
  EXPECT_EQ(fault().status, 400);
  EXPECT_EQ(fault().param, "Sec-WebSocket-Key");
  request.headers.push_back({"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="});
  request.headers.push_back({"Sec-WebSocket-Version", "12"});
  EXPECT_EQ(fault().status, 426);
  EXPECT_THAT(fault().message, HasSubstr("13"));
  request.headers.back().value = "13";
  EXPECT_EQ(fault().status, 0);
  request.headers.front().value = "h2c";
  EXPECT_EQ(fault().status, 426);
}

class RealtimeRoute : public testing::Test {
 protected:
  void SetUp() override {
    settings_.speech_model = "";
    settings_.recognition_model = "fake";
    settings_.upstream = "http://127.0.0.1:1/v1";
    settings_.upstream_model = "llama3.2";
  }
  // Status of a request that names the model: 101 where a session begins.
  int status_of(Service& service, const std::string& model) {
    HttpRequest request;
    request.method = "GET";
    request.path = "/v1/realtime";
    request.query = "model=" + model;
    request.headers = {{"Host", "localhost"},
                       {"Upgrade", "websocket"},
                       {"Sec-WebSocket-Version", "13"},
                       {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
    const HttpReply reply = service.answer(request);
    if (!reply.messages) return reply.status;
    reply.messages->leave();
    return 101;
  }
  void load(Service& service) {
    const auto model =
        RecognitionModel::of(settings_, {.family = &whisper_family()}, std::make_shared<FakeRecogniser>());
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_TRUE(service.start());
    service.ready(nullptr, *model);
  }

  Settings settings_;
};

TEST_F(RealtimeRoute, TheLanguageModelsNameIsOneWhereItAnswers) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  service.answer_by(std::make_shared<ReadAloud>());
  load(service);
  EXPECT_EQ(status_of(service, "llama3.2"), 101);
  EXPECT_EQ(status_of(service, "gpt-realtime-2025-08-28"), 101);
  EXPECT_EQ(status_of(service, "llama3.3"), 404);
}

// OpenAI's package writes every name so.
TEST_F(RealtimeRoute, AModelsNameIsDecoded) {
  settings_.upstream_model = "meta/llama3.2:1b";
  Service service(settings_, *ApiKeys::load({}), nullptr);
  service.answer_by(std::make_shared<ReadAloud>());
  load(service);
  EXPECT_EQ(status_of(service, "meta%2Fllama3.2%3A1b"), 101);
  EXPECT_EQ(status_of(service, "meta/llama3.2:1b"), 101);
  EXPECT_EQ(status_of(service, "meta%2Fllama3.2%3A1b%2"), 404);
  HttpRequest request;
  request.query = "model=a%3Ab%";
  EXPECT_EQ(read_handshake(request, "auto").model, "a%3Ab%");  // as it came
  request.query = "intent=%74ranscription";
  EXPECT_TRUE(read_handshake(request, "auto").is_transcription);
}

TEST_F(RealtimeRoute, TheLanguageModelsNameIsNoneWhereNothingAnswers) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  load(service);
  EXPECT_EQ(status_of(service, "llama3.2"), 404);
}

}  // namespace
}  // namespace syrinx::server::realtime
