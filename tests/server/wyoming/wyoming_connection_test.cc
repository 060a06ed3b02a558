// Clients of Wyoming who speak and do not read, through sockets, with a recogniser that finds more words than any
// socket holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "engine/families/whisper/whisper_family.h"
#include "server/http/http_server.h"
#include "server/service.h"
#include "server/wyoming/connection.h"
#include "server/wyoming/event.h"
#include "tests/engine/recognition/fake_recogniser.h"

namespace syrinx::server::wyoming {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr double kPatienceMs = 120'000;

std::string spoken(const std::vector<float>& sound) {
  Event chunk{.type = "audio-chunk"};
  for (const auto& [name, value] :
       {std::pair("rate", kRecognitionRateHz), std::pair("width", 2), std::pair("channels", 1)})
    chunk.data.set(name, value);
  for (const float sample : sound) {
    const int value = static_cast<int>(sample * 32767);
    chunk.payload += static_cast<char>(value & 0xff);
    chunk.payload += static_cast<char>(value >> 8 & 0xff);
  }
  return written(chunk);
}

class WyomingConnection : public testing::Test {
 protected:
  WyomingConnection() {
    recogniser_->streams_are_whole = true;
    recogniser_->word.assign(size_t{6} << 20, 'x');
  }
  void serve(double stalled_reader_s) {
    Settings settings;
    settings.speech_model = "";
    settings.recognition_model = "fake";
    service_ = std::make_unique<Service>(settings, *ApiKeys::load({}), nullptr);
    ASSERT_TRUE(service_->start());
    const auto model = RecognitionModel::of(settings, {.family = &whisper_family()}, recogniser_);
    ASSERT_TRUE(model) << model.error().message;
    service_->ready(nullptr, *model);
    auto server = HttpServer::listen({.idle_timeout_s = 3600, .stalled_reader_s = stalled_reader_s}, *service_,
                                     wyoming_port(0, *service_));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    client_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const int kept = 65536;  // the server's side keeps 4 MB at most
    ASSERT_EQ(::setsockopt(client_, SOL_SOCKET, SO_RCVBUF, &kept, sizeof(kept)), 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->protocol_port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(client_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  void TearDown() override {
    ::close(client_);
    if (server_) server_->stop();
  }
  bool send(const std::string& bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t sent = ::send(client_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<size_t>(sent);
    }
    return true;
  }
  bool is_answering(size_t wanted, double within_ms) const {
    const Stopwatch waited;
    while (server_->answering() != wanted && waited.elapsed_ms() < within_ms)
      std::this_thread::sleep_for(milliseconds(1));
    return server_->answering() == wanted;
  }

  const std::shared_ptr<FakeRecogniser> recogniser_ = std::make_shared<FakeRecogniser>();
  std::unique_ptr<Service> service_;
  std::unique_ptr<HttpServer> server_;
  int client_ = -1;
};

// As Home Assistant does, which reads behind its last word.
TEST_F(WyomingConnection, SpeakerThatReadsNothingIsTranscribed) {
  constexpr double kStalledS = 6;  // longer than a machine stands still
  serve(kStalledS);
  ASSERT_TRUE(send(spoken(beeps({0.1}, 1, kRecognitionRateHz))));
  const std::string silence = spoken(std::vector<float>(160));
  for (const Stopwatch speaking; speaking.elapsed_ms() < 1.75e3 * kStalledS;) {
    ASSERT_TRUE(send(silence));
    std::this_thread::sleep_for(milliseconds(10));
  }
  ASSERT_TRUE(send(written(Event{.type = "audio-stop"})));
  std::this_thread::sleep_for(std::chrono::duration<double>(0.5 * kStalledS));  // so long again he has, from here on
  EventReader reader({.max_json_bytes = size_t{8} << 20});
  std::string text, last;
  std::vector<char> bytes(65536);
  for (ssize_t count = 1; last != "transcript-stop" && count > 0;) {
    count = ::recv(client_, bytes.data(), bytes.size(), 0);
    if (count > 0) reader.push({bytes.data(), static_cast<size_t>(count)});
    for (auto event = reader.next(); event && *event; event = reader.next()) {
      last = (*event)->type;
      if (last == "transcript-chunk") text += *(*event)->text("text");
      EXPECT_TRUE(last != "transcript" || *(*event)->text("text") == text);
    }
  }
  EXPECT_EQ(last, "transcript-stop");
  EXPECT_TRUE(text == recogniser_->word);
}

// Once there is no more room on the way to him, which nobody sees from here: so he speaks again until it is so.
TEST_F(WyomingConnection, StalledReaderIsDisconnected) {
  serve(0.5);
  ASSERT_TRUE(send(spoken(beeps({0.1}, 1, kRecognitionRateHz))));
  ASSERT_TRUE(is_answering(1, kPatienceMs));
  const std::string silence = spoken(std::vector<float>(160));
  for (const Stopwatch waited; server_->answering() == 1 && waited.elapsed_ms() < kPatienceMs;) {
    for (int i = 0; i < 200 && send(silence); ++i) std::this_thread::sleep_for(milliseconds(5));
    is_answering(0, 2000);
  }
  EXPECT_EQ(server_->answering(), 0U);
}

}  // namespace
}  // namespace syrinx::server::wyoming
