// Room for bodies and messages, where the service takes it and gives it back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "engine/families/whisper/whisper_family.h"
#include "server/http/message_stream.h"
#include "server/service.h"
#include "tests/engine/recognition/fake_recogniser.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;

constexpr size_t kMegabyte = size_t{1} << 20;

TEST(HttpRequest, NothingIsLeftBehindIt) {
  HttpRequest request;
  const auto hold = std::make_shared<int>();
  request.body = std::string(kMegabyte, 'x');
  request.hold = hold;
  request.free_body();
  EXPECT_LT(request.body.capacity(), 100U);
  EXPECT_EQ(hold.use_count(), 1);
  request.body = request.path = std::string(kMegabyte, 'x');
  request.clear();
  EXPECT_LT(request.body.capacity(), 100U);
  EXPECT_LT(request.path.capacity(), 100U);
}

class ServiceRoom : public testing::Test {
 protected:
  void SetUp() override {
    settings_.speech_model = "";
    settings_.recognition_model = "fake";
    settings_.max_upload_mb = settings_.max_uploads_mb = 1;
  }
  void load(Service& service) {
    const auto model =
        RecognitionModel::of(settings_, {.family = &whisper_family()}, std::make_shared<FakeRecogniser>());
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_TRUE(service.start());
    service.ready(nullptr, *model);
  }
  static HttpRequest request(const char* method, const char* path) {
    HttpRequest made;
    made.method = method;
    made.path = path;
    made.headers = {{"Host", "localhost"}};
    return made;
  }
  static HttpRequest handshake(const char* path) {
    HttpRequest made = request("GET", path);
    made.headers.insert(
        made.headers.end(),
        {{"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}});
    return made;
  }
  static std::string metrics(Service& service) {
    HttpRequest asked = request("GET", "/metrics");
    return service.answer(asked).body;
  }

  Settings settings_;
};

TEST_F(ServiceRoom, LongJsonTakesRoom) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  const HttpRequest head = request("POST", "/v1/audio/speech");
  HttpService::Admission first = service.admit(head), second = service.admit(head);
  ASSERT_TRUE(first.grow && second.grow);
  EXPECT_EQ(first.max_body_bytes, kMegabyte);  // more would never find room
  EXPECT_EQ(first.body_setting, "max_uploads_mb");
  EXPECT_EQ(first.grow(size_t{64} << 10), nullptr);  // short bodies take none
  EXPECT_THAT(metrics(service), HasSubstr("syrinx_upload_bytes 0\n"));
  EXPECT_EQ(first.grow(700000), nullptr);
  EXPECT_THAT(metrics(service), HasSubstr("syrinx_upload_bytes 700000\n"));
  const auto refused = second.grow(400000);
  ASSERT_NE(refused, nullptr);
  EXPECT_THAT(refused->body, HasSubstr("uploads_full"));
  first = {};
  EXPECT_EQ(second.grow(400000), nullptr);
  second = {};
  EXPECT_THAT(metrics(service), HasSubstr("syrinx_upload_bytes 0\n"));
}

TEST_F(ServiceRoom, SpeechKeepsNoBody) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  HttpRequest asked = request("POST", "/v1/audio/speech");
  asked.body = R"({"input":"Hi.","lang_code":")" + std::string(kMegabyte, 'x') + "\"}";
  EXPECT_EQ(service.answer(asked).status, 503);  // still loading
  EXPECT_LT(asked.body.capacity(), 100U);
}

TEST_F(ServiceRoom, LongMessagesTakeRoom) {
  Service service(settings_, *ApiKeys::load({}), nullptr);
  load(service);
  for (const char* path : {"/v1/realtime", "/v2/decode/stream/fake"}) {
    HttpRequest stream = handshake(path);
    const HttpReply reply = service.answer(stream);
    ASSERT_NE(reply.messages, nullptr) << reply.body;
    MessageStream::Room room;
    EXPECT_TRUE(reply.messages->has_room_for(MessageStream::kShortBytes, room));
    EXPECT_FALSE(room);
    EXPECT_FALSE(reply.messages->has_room_for(MessageStream::kShortBytes + 1, room)) << path;
    EXPECT_TRUE(room);
    reply.messages->leave();
  }
}

}  // namespace
}  // namespace syrinx::server
