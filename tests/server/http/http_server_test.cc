#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "server/host/request_log.h"
#include "server/host/slots.h"
#include "server/http/message_stream.h"
#include "server/http/reply_stream.h"
#include "tests/server/http/raw_client.h"

namespace syrinx::server {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string ask(int port, const std::string& path) {
  return send_and_hear(port, "GET " + path + " HTTP/1.1\r\nConnection: close\r\n\r\n");
}

// Throws where the path says so.
class ThrowingService : public HttpService {
 public:
  Admission admit(const HttpRequest& head) override {
    if (head.path == "/admit") throw std::runtime_error("no admission");
    return {};
  }
  HttpReply answer(HttpRequest& request) override {
    if (request.path == "/memory") throw std::bad_alloc();
    if (request.path == "/answer") throw std::runtime_error("no answer");
    if (request.path == "/stream") return {.stream = said("fine")};
    if (request.path == "/failure") return {.stream = said("event: error\n\n", 503)};
    return {.body = "fine"};
  }
  void answered(const HttpRequest& /*request*/, const Answered& answered) override { last_status = answered.status; }
  void refused() override {
    ++refusals;
    throw std::runtime_error("no refusal");
  }
  void handshake_failed() override { ++failed_handshakes; }
  std::atomic<int> last_status{0}, refusals{0}, failed_handshakes{0};

 private:
  static std::shared_ptr<ReplyStream> said(std::string_view words, int failure = 0) {
    auto stream = std::make_shared<ReplyStream>();
    stream->begin({.status = 200}, /*whole=*/false);
    if (failure != 0) stream->note_failure(failure);
    EXPECT_TRUE(stream->write(words));
    stream->finish();
    return stream;
  }
};

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    set_log_sink([this](LogLevel, std::string_view) { ++logged_; });
  }
  void TearDown() override { set_log_sink({}); }
  void listen(const HttpLimits& limits) {
    auto server = HttpServer::listen(limits, service_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void wait_until_idle() {
    while (server_->answering() > 0) std::this_thread::yield();
  }

  std::atomic<int> logged_{0};
  ThrowingService service_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServiceExceptionBecomesAnAnswer) {
  listen({});
  EXPECT_THAT(ask(server_->port(), "/answer"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(ask(server_->port(), "/memory"), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(service_.last_status, 503);
  EXPECT_EQ(logged_, 2);
  EXPECT_THAT(ask(server_->port(), "/"), HasSubstr("fine"));
}

// Neither the sound nor the chunk that ends it, which would be read as the next answer's beginning.
TEST_F(HttpServerTest, OfAStreamTheHeadAloneComesWhereItIsAskedFor) {
  listen({});
  const std::string next = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
  EXPECT_THAT(send_and_hear(server_->port(), "GET /stream HTTP/1.1\r\n\r\n" + next),
              HasSubstr("\r\n\r\n4\r\nfine\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"));
  const std::string answers = send_and_hear(server_->port(), "HEAD /stream HTTP/1.1\r\n\r\n" + next);
  EXPECT_THAT(answers, HasSubstr("Transfer-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answers, EndsWith("fine"));
}

TEST_F(HttpServerTest, AStreamThatTellsOfItsFailureIsCountedAsOne) {
  listen({});
  EXPECT_THAT(ask(server_->port(), "/failure"), testing::StartsWith("HTTP/1.1 200 OK\r\n"));
  wait_until_idle();
  EXPECT_EQ(service_.last_status, 503);
}

TEST_F(HttpServerTest, AConnectionThatIsGivenUpIsNotCountedForEver) {
  listen({});
  EXPECT_EQ(ask(server_->port(), "/admit"), "");
  wait_until_idle();
  EXPECT_EQ(logged_, 1);
  EXPECT_THAT(ask(server_->port(), "/"), HasSubstr("fine"));
}

TEST_F(HttpServerTest, ExceptionAffectsOneConnectionOnly) {
  listen({.max_connections = 0});
  for (int i = 1; i <= 3; ++i) {
    ask(server_->port(), "/");
    while (service_.refusals < i) std::this_thread::yield();
  }
  server_->stop();
  EXPECT_EQ(logged_, 3);
}

TEST_F(HttpServerTest, AClientForWhomThereIsNoRoomHearsSo) {
  listen({.max_connections = 0});
  for (int i = 0; i < 300; ++i) ASSERT_THAT(ask(server_->port(), "/"), StartsWith("HTTP/1.1 503 ")) << i;
}

// The third one; one that has ended makes room.
TEST_F(HttpServerTest, SoManyConnectionsAndNoMore) {
  listen({.max_connections = 2, .idle_timeout_s = 3600});
  char byte = 0;
  int open_now[2];
  for (int& client : open_now) {
    client = connect_and_send(server_->port(), "GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(::recv(client, &byte, 1, 0), 1);
  }
  const std::string refused = ask(server_->port(), "/");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(refused, HasSubstr("\r\nX-Request-Id: "));
  EXPECT_THAT(refused,
              EndsWith(R"({"error":{"message":"the server has too many connections: 'max_connections' is 2; )"
                       R"(ask again in a second","type":"overloaded_error","param":null,"code":"connections"}})"));
  ::close(open_now[0]);
  std::string answer;
  do answer = ask(server_->port(), "/");
  while (answer.starts_with("HTTP/1.1 503 "));  // until its end has been seen
  EXPECT_THAT(answer, EndsWith("\r\n\r\nfine"));
  ::close(open_now[1]);
}

TEST_F(HttpServerTest, AHeaderMayHaveSoManyBytes) {
  const std::string request = "GET / HTTP/1.1\r\nConnection: close\r\nX: " + std::string(10000, 'x') + "\r\n\r\n";
  listen({.max_header_bytes = 16384});  // Beast's own limit is 8192
  EXPECT_THAT(send_and_hear(server_->port(), request), EndsWith("\r\n\r\nfine"));
  listen({.max_header_bytes = 4096});
  const std::string refused = send_and_hear(server_->port(), request);
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(refused,
              HasSubstr("the request's header has more than 4 KB, which is what the server's 'max_header_kb' lets in"));
}

// Notes how much memory a connection's body has when the next request comes.
class HeldMemory final : public ThrowingService {
 public:
  Admission admit(const HttpRequest& head) override {
    held.push_back(head.body.capacity());
    return {.max_body_bytes = size_t{1} << 20};
  }
  HttpReply answer(HttpRequest& request) override {
    EXPECT_EQ(request.body.size(), request.method == "POST" ? kBodyBytes : 0U);
    return ThrowingService::answer(request);
  }
  static constexpr size_t kBodyBytes = 1000000;
  std::vector<size_t> held;  // bytes; read when the connection is closed
};

TEST_F(HttpServerTest, ConnectionKeepsNoBody) {
  HeldMemory service;
  const auto server = HttpServer::listen({}, service);
  ASSERT_TRUE(server) << server.error().message;
  const std::string body(HeldMemory::kBodyBytes, 'x');
  std::string requests;
  for (const char* const path : {"/", "/answer", "/stream"})
    requests += fmt::format("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body);
  requests += "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
  EXPECT_THAT(send_and_hear((*server)->port(), requests), EndsWith("fine"));
  (*server)->stop();
  ASSERT_EQ(service.held.size(), 4U);
  EXPECT_THAT(service.held, testing::Each(testing::Lt(100U)));
}

// An answer of which the test holds the other end.
class StreamService final : public ThrowingService {
 public:
  HttpReply answer(HttpRequest& /*request*/) override { return {.stream = stream}; }
  const std::shared_ptr<ReplyStream> stream = std::make_shared<ReplyStream>();
};

// Clients that were refused, or that keep their connections open, do not delay the end.
TEST_F(HttpServerTest, LingeringClientsDelayNoShutdown) {
  constexpr double kPatienceMs = 60000;
  StreamService service;
  service.stream->begin({.status = 200}, /*whole=*/false);
  const auto server = HttpServer::listen({.linger_s = 3600}, service);
  ASSERT_TRUE(server) << server.error().message;
  const auto answering_falls_to = [&server](size_t wanted) {
    const Stopwatch waited;
    while ((*server)->answering() > wanted && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    return (*server)->answering() == wanted;
  };
  char byte = 0;
  const int hears = connect_and_send((*server)->port(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(::recv(hears, &byte, 1, 0), 1);
  const int refused = connect_and_send((*server)->port(), "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
  while (::recv(refused, &byte, 1, 0) > 0) {
  }
  EXPECT_EQ((*server)->answering(), 2);
  (*server)->drain();
  EXPECT_TRUE(answering_falls_to(1));
  service.stream->finish();
  EXPECT_TRUE(answering_falls_to(0));
  ::close(hears);
  ::close(refused);
}

// Beast throws at such a header, while the client is watched for leaving, which it does not.
TEST_F(HttpServerTest, ExceptionInAnswerEndsItsWork) {
  StreamService service;
  service.stream->begin({.status = 200, .headers = {{"X", std::string(70000, 'x')}}}, /*whole=*/false);
  const auto server = HttpServer::listen({.stalled_reader_s = 3600}, service);
  ASSERT_TRUE(server) << server.error().message;
  const int client = connect_and_send((*server)->port(), "GET / HTTP/1.1\r\n\r\n");
  char byte = 0;
  EXPECT_LE(::recv(client, &byte, 1, 0), 0);
  EXPECT_TRUE(service.stream->cancelled());
  const Stopwatch waited;
  while ((*server)->answering() > 0 && waited.elapsed_ms() < 60000) std::this_thread::yield();
  EXPECT_EQ((*server)->answering(), 0);
  ::close(client);
}

// A session of which the test holds the other end.
class SessionService final : public ThrowingService {
 public:
  HttpReply answer(HttpRequest& /*request*/) override { return {.messages = messages}; }
  const std::shared_ptr<MessageStream> messages = std::make_shared<MessageStream>();
};

constexpr const char* kHandshake =
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

TEST_F(HttpServerTest, TheEndWaitsForNoReader) {
  SessionService service;
  const auto server = HttpServer::listen({.stalled_reader_s = 3600}, service);
  ASSERT_TRUE(server) << server.error().message;
  service.messages->send({.bytes = std::string(size_t{64} << 20, 'x')});  // more than any socket takes
  const int client = connect_and_send((*server)->port(), kHandshake);
  std::string got;
  for (char byte = 0; !got.ends_with("xx") && ::recv(client, &byte, 1, 0) == 1;) got += byte;
  EXPECT_THAT(got, StartsWith("HTTP/1.1 101 "));
  (*server)->stop();  // long before that time is up
  ::close(client);
}

TEST_F(HttpServerTest, ASessionThatHearsNothingEndsAllTheSame) {
  SessionService service;
  const auto server = HttpServer::listen({}, service);
  ASSERT_TRUE(server) << server.error().message;
  const int client = connect_and_send((*server)->port(), kHandshake);
  char bytes[4096];
  EXPECT_GT(::recv(client, bytes, sizeof(bytes), 0), 0);
  const std::string_view message("\x81\x80\0\0\0\0", 6), close("\x88\x80\0\0\0\0", 6);
  std::string sent;
  for (size_t i = 0; i < MessageStream::kMessages; ++i) sent += message;
  sent += close;  // stands behind what there is no room for
  EXPECT_EQ(::send(client, sent.data(), sent.size(), MSG_NOSIGNAL), static_cast<ssize_t>(sent.size()));
  ::shutdown(client, SHUT_WR);
  while (service.messages->takes_more()) std::this_thread::yield();
  service.messages->end({});
  while ((*server)->answering() > 0) std::this_thread::yield();
  EXPECT_EQ(service.last_status, 101);
  ::close(client);
}

// A frame of a message, masked with zeros; of less than 64 kB.
std::string frame(char first_byte, size_t bytes) {
  const char length[] = {static_cast<char>(0x80 | 126), static_cast<char>(bytes >> 8), static_cast<char>(bytes)};
  return first_byte + std::string(length, sizeof(length)) + std::string(4, '\0') + std::string(bytes, 'x');
}

// Sends frames; `check` sees the session's messages, with the client's socket behind the handshake's answer.
void send_frames(const std::string& frames, const std::function<void(MessageStream& got, int client)>& check) {
  SessionService service;
  const auto server = HttpServer::listen({.max_message_bytes = 1000}, service);
  ASSERT_TRUE(server) << server.error().message;
  const int client = connect_and_send((*server)->port(), kHandshake);
  std::string head;
  for (char byte = 0; !head.ends_with("\r\n\r\n") && ::recv(client, &byte, 1, 0) == 1;) head += byte;
  EXPECT_EQ(::send(client, frames.data(), frames.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frames.size()));
  ::shutdown(client, SHUT_WR);
  check(*service.messages, client);
  ::close(client);
}

// The frames of one message count together.
TEST_F(HttpServerTest, AMessageOfSeveralFramesHasTheLimitOfOne) {
  constexpr char kFirst = '\x01', kMiddle = '\0', kLast = '\x80', kWhole = '\x81';
  send_frames(frame(kFirst, 400) + frame(kMiddle, 300) + frame(kLast, 300), [](MessageStream& got, int /*client*/) {
    while (!got.is_gone()) std::this_thread::yield();
    MessageStream::Message message;
    EXPECT_TRUE(got.try_receive(message));
    EXPECT_EQ(message.bytes, std::string(1000, 'x'));
  });
  for (const std::string& beyond : {frame(kWhole, 1001), frame(kFirst, 400) + frame(kMiddle, 300) + frame(kLast, 301)})
    send_frames(beyond, [](MessageStream& got, int client) {
      std::string close(4, '\0');
      EXPECT_EQ(::recv(client, close.data(), close.size(), MSG_WAITALL), static_cast<ssize_t>(close.size()));
      EXPECT_EQ(close[0], '\x88');
      EXPECT_EQ(close.substr(2), "\x03\xf1");  // 1009
      while (!got.is_gone()) std::this_thread::yield();
      MessageStream::Message message;
      EXPECT_FALSE(got.try_receive(message));
    });
}

// One message of two megabytes, masked with zeros.
std::string long_frame() {
  constexpr size_t kBytes = size_t{2} << 20;
  const std::string_view head("\x81\xff\0\0\0\0\0\x20\0\0\0\0\0\0", 14);
  return std::string(head) + std::string(kBytes, 'x');
}

TEST_F(HttpServerTest, LongMessageNeedsRoom) {
  for (const bool has_room : {true, false}) {
    SessionService service;
    std::atomic<size_t> asked{0};
    service.messages->set_room([&]() -> MessageStream::Room {
      return [&](size_t bytes) {
        asked = bytes;
        return has_room;
      };
    });
    const auto server = HttpServer::listen({.max_message_bytes = size_t{4} << 20}, service);
    ASSERT_TRUE(server) << server.error().message;
    const int client = connect_and_send((*server)->port(), kHandshake);
    std::string head;
    for (char byte = 0; !head.ends_with("\r\n\r\n") && ::recv(client, &byte, 1, 0) == 1;) head += byte;
    const std::string frames = frame('\x81', 1000) + long_frame();
    ::send(client, frames.data(), frames.size(), MSG_NOSIGNAL);
    MessageStream::Message message;
    while (!service.messages->try_receive(message)) std::this_thread::yield();
    EXPECT_FALSE(message.room);
    if (has_room) {
      while (!service.messages->try_receive(message)) std::this_thread::yield();
      EXPECT_EQ(message.bytes.size(), size_t{2} << 20);
      EXPECT_EQ(asked, message.bytes.size());
      EXPECT_TRUE(message.room);
    } else {
      std::string close(4, '\0');
      EXPECT_EQ(::recv(client, close.data(), close.size(), MSG_WAITALL), static_cast<ssize_t>(close.size()));
      EXPECT_EQ(close.substr(2), "\x03\xf5");  // 1013
      EXPECT_GT(asked, MessageStream::kShortBytes);
    }
    ::close(client);
    (*server)->stop();
  }
}

// A message of two megabytes, of which some come at once and the rest in small parts.
class SlowMessage : public testing::Test {
 protected:
  // The close frame's code.
  std::string close_of(const HttpLimits& limits, bool goes_on) {
    SessionService service;
    service.messages->set_room([]() -> MessageStream::Room { return [](size_t) { return true; }; });
    const auto server = HttpServer::listen(limits, service);
    if (!server) return server.error().message;
    const int client = connect_and_send((*server)->port(), kHandshake);
    std::string head;
    for (char byte = 0; !head.ends_with("\r\n\r\n") && ::recv(client, &byte, 1, 0) == 1;) head += byte;
    const std::string half = long_frame().substr(0, MessageStream::kShortBytes + 10000);
    ::send(client, half.data(), half.size(), MSG_NOSIGNAL);
    std::string close(4, '\0');
    for (int waits = 0; waits < 3000 && ::recv(client, close.data(), close.size(), MSG_PEEK | MSG_DONTWAIT) < 4;
         ++waits) {
      if (goes_on) ::send(client, "x", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(::recv(client, close.data(), close.size(), 0), 4);
    ::close(client);
    (*server)->stop();
    return close.substr(2);
  }
};

TEST_F(SlowMessage, StalledMessageEndsTheSession) {
  EXPECT_EQ(close_of({.max_message_bytes = size_t{4} << 20, .stalled_reader_s = 0.3}, false), "\x03\xf0");  // 1008
}

TEST_F(SlowMessage, MessageHasATimeInAll) {
  EXPECT_EQ(close_of({.max_message_bytes = size_t{4} << 20, .message_timeout_s = 0.5}, true), "\x03\xf0");
}

// As long as it lives no thread can be made: none has room for its stack.
class WithoutThreads {
 public:
  WithoutThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(::pthread_attr_init(&huge), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&huge, size_t{1} << 56), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&huge), 0);
    ::pthread_attr_destroy(&huge);
  }
  ~WithoutThreads() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    ::pthread_attr_destroy(&before_);
  }
  WithoutThreads(const WithoutThreads&) = delete;
  WithoutThreads& operator=(const WithoutThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST_F(HttpServerTest, ThreadsThatCannotBeMadeAreAnError) {
  const WithoutThreads none;
  const auto server = HttpServer::listen({}, service_);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, Code::kUnavailable);
  SlotPool slots(2);
  const Status slots_started = slots.start();
  ASSERT_FALSE(slots_started);
  EXPECT_EQ(slots_started.error().code, Code::kUnavailable);
  EXPECT_THAT(slots_started.error().message, HasSubstr("for 0 of 2 slots"));
  RequestLog log(STDERR_FILENO);
  const Status log_started = log.start();
  ASSERT_FALSE(log_started);
  EXPECT_EQ(log_started.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace syrinx::server
