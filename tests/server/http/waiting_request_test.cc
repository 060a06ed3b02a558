// Requests that wait for what their answer needs: HttpReply::until.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "server/http/http_server.h"
#include "server/http/reply_stream.h"
#include "tests/server/http/raw_client.h"

namespace syrinx::server {
namespace {

// Has no answer to the first request before `loaded` ends.
class LateService final : public HttpService {
 public:
  Admission admit(const HttpRequest& /*head*/) override { return {.max_body_bytes = 100}; }
  HttpReply answer(HttpRequest& request) override {
    if (++asked == 1) return {.until = loaded};
    return {.body = request.body};
  }
  void answered(const HttpRequest& /*request*/, const Answered& answered) override { last_status = answered.status; }
  void refused() override {}
  void handshake_failed() override {}

  const std::shared_ptr<ReplyStream> loaded = std::make_shared<ReplyStream>();
  std::atomic<int> asked{0}, last_status{0};
};

TEST(WaitingRequest, IsAnsweredWhenItsWaitEnds) {
  LateService service;
  const auto server = HttpServer::listen({}, service);
  ASSERT_TRUE(server) << server.error().message;
  std::thread loader([&service] {
    while (service.asked == 0) std::this_thread::yield();
    service.loaded->finish();
  });
  const std::string answers = send_and_hear((*server)->port(),
                                            "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
                                            "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  loader.join();
  EXPECT_THAT(answers, testing::ContainsRegex("X-Syrinx-Waited: [0-9.]+\r\n"));
  EXPECT_THAT(answers, testing::HasSubstr("\r\n\r\nbodyHTTP/1.1 200"));
  EXPECT_EQ(service.asked, 3);
}

TEST(WaitingRequest, LeavingClientEndsItsWait) {
  LateService service;
  const auto server = HttpServer::listen({}, service);
  ASSERT_TRUE(server) << server.error().message;
  const int client = connect_and_send((*server)->port(), "GET / HTTP/1.1\r\n\r\n");
  while (service.asked == 0) std::this_thread::yield();
  ::close(client);
  while ((*server)->answering() > 0) std::this_thread::yield();
  EXPECT_TRUE(service.loaded->cancelled());
  EXPECT_EQ(service.last_status, 499);
  EXPECT_EQ(service.asked, 1);
}

}  // namespace
}  // namespace syrinx::server
