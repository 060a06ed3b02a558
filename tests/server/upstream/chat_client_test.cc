// The client against an endpoint of this process: what comes, what goes wrong, and what leaving does.
#include "server/upstream/chat_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tests/server/upstream/chat_endpoint.h"

namespace syrinx::server::upstream {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

constexpr const char* kKey = "sk-never-shown";

void say_one(const ChatEndpoint::Answer& answer) {
  answer.begin();
  answer.say("One.");
  answer.done();
}

// Waits to be woken, as a session does.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    ++rung_;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, 60s, [this] { return rung_ > heard_; })) << "nobody rings";
    heard_ = rung_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int rung_ = 0, heard_ = 0;
};

class ChatClientTest : public testing::Test {
 protected:
  void start(const std::string& url, double timeout_s = 60, size_t max_answer_bytes = 1 << 20) {
    auto client = ChatClient::start(
        {.url = url + "/chat/completions", .key = kKey, .timeout_s = timeout_s, .max_answer_bytes = max_answer_bytes});
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
  }
  std::unique_ptr<Chat> ask() {
    return client_->ask(R"({"stream":true})", [this] { bell_.ring(); });
  }
  // The whole answer; how it ended is outcome_.
  std::string hear(Chat& chat) {
    std::string text;
    outcome_ = Status();
    while (true) {
      const Result<bool> more = chat.take(text);
      if (!more) outcome_ = tl::unexpected(more.error());
      if (!more || !*more) return text;
      bell_.wait();
      if (HasFatalFailure()) return text;
    }
  }
  // The caller's error.
  std::string fault_of(const ChatEndpoint::Handler& handler, double timeout_s = 60, size_t max_answer_bytes = 1 << 20) {
    const ChatEndpoint endpoint(handler);
    start(endpoint.url(), timeout_s, max_answer_bytes);
    heard_ = hear(*ask());
    const std::string message = outcome_ ? "" : outcome_.error().message;
    EXPECT_THAT(message, Not(HasSubstr(kKey)));
    EXPECT_THAT(message, Not(HasSubstr("127.0.0.1")));
    if (!outcome_) {
      EXPECT_EQ(outcome_.error().code, Code::kUnavailable);
    }
    client_.reset();
    return message;
  }

  Bell bell_;
  std::unique_ptr<ChatClient> client_;
  Status outcome_;
  std::string heard_;
};

TEST_F(ChatClientTest, AnAnswerIsHeardWhileItComes) {
  std::atomic<bool> is_heard{false};
  const ChatEndpoint endpoint([&](const ChatEndpoint::Answer& answer) {
    answer.begin();
    answer.say("One. ");
    while (!is_heard && !answer.is_left(1ms)) {
    }
    answer.say("Two.");
    answer.done();
  });
  start(endpoint.url());
  const auto chat = ask();
  std::string text;
  while (text.empty()) {
    ASSERT_TRUE(*chat->take(text));
    if (text.empty()) bell_.wait();
  }
  EXPECT_EQ(text, "One. ");
  is_heard = true;
  EXPECT_EQ(hear(*chat), "Two.");
  EXPECT_TRUE(outcome_);
  ASSERT_EQ(endpoint.requests().size(), 1u);
  EXPECT_THAT(endpoint.requests()[0], testing::StartsWith("POST /v1/chat/completions HTTP/1.1\r\n"));
  EXPECT_THAT(endpoint.requests()[0], HasSubstr("\r\nAuthorization: Bearer sk-never-shown\r\n"));
  EXPECT_THAT(endpoint.requests()[0], HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(endpoint.requests()[0], testing::EndsWith("\r\n\r\n{\"stream\":true}"));
}

TEST_F(ChatClientTest, LeavingCallerClosesTheConnection) {
  std::atomic<int> left{0};
  const ChatEndpoint endpoint([&](const ChatEndpoint::Answer& answer) {
    answer.begin();
    answer.say("One.");
    if (answer.is_left(60s)) ++left;
  });
  start(endpoint.url());
  {
    const auto chat = ask();
    bell_.wait();
  }
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (left == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(left, 1);
}

// The endpoint ends its answer a little behind the last word, when the one who asked has left.  Whoever asks before the
// client has seen that gets another connection, which is right; so it is tried until one is used again.
TEST_F(ChatClientTest, AConnectionServesOneAnswerAfterAnother) {
  std::atomic<int> begun{0}, left{0};
  const ChatEndpoint endpoint(
      [&](const ChatEndpoint::Answer& answer) {
        const int mine = ++begun;
        answer.begin();
        answer.say("One.");
        answer.chunk("data: [DONE]\n\n");
        while (left < mine && !answer.is_left(1ms)) {
        }
        answer.is_left(50ms);
        answer.send("0\r\n\r\n");
      },
      ChatEndpoint::Behind::kStaysOpen);
  start(endpoint.url());
  const auto end = std::chrono::steady_clock::now() + 60s;
  int asked = 0;
  do {
    EXPECT_EQ(hear(*ask()), "One.");
    EXPECT_TRUE(outcome_);
    left = ++asked;
    std::this_thread::sleep_for(100ms);
  } while (endpoint.connections() == asked && std::chrono::steady_clock::now() < end);
  EXPECT_LT(endpoint.connections(), asked);
}

TEST_F(ChatClientTest, AnAnswerThatIsNotEndedKeepsNoConnection) {
  std::atomic<int> left{0};
  const ChatEndpoint endpoint([&](const ChatEndpoint::Answer& answer) {
    answer.begin();
    answer.say("One.");
    answer.chunk("data: [DONE]\n\n");
    if (answer.is_left(60s)) ++left;
  });
  start(endpoint.url());
  const auto chat = ask();
  EXPECT_EQ(hear(*chat), "One.");
  EXPECT_TRUE(outcome_);
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (left == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(left, 1);
}

// Whether the client sees that before it asks, or only because nothing comes.
TEST_F(ChatClientTest, AConnectionThatTheEndpointHasClosedIsNoFault) {
  const ChatEndpoint endpoint(say_one);
  start(endpoint.url());
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(hear(*ask()), "One.");
    EXPECT_TRUE(outcome_) << outcome_.error().message;
    EXPECT_EQ(endpoint.connections(), i);
  }
}

// After the last question, an endpoint would keep the connection open for ever.
TEST_F(ChatClientTest, AConnectionThatIsKeptIsClosedInTheEnd) {
  const ChatEndpoint endpoint(say_one, ChatEndpoint::Behind::kStaysOpen);
  auto client =
      ChatClient::start({.url = endpoint.url() + "/chat/completions", .keep_s = 1, .max_answer_bytes = 1 << 20});
  ASSERT_TRUE(client) << client.error().message;
  client_ = std::move(*client);
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(hear(*ask()), "One.");
    EXPECT_TRUE(outcome_);
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (endpoint.closed() < i && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(endpoint.closed(), i);
  }
  EXPECT_EQ(endpoint.connections(), 2);
}

// More than goes out at once, so that the client is amid the question as it meets the end.  Whoever asks before the
// client has seen the last answer's end gets another connection; so it is tried until three have crossed.
TEST_F(ChatClientTest, AQuestionThatCrossesItsConnectionsEndIsAskedAgain) {
  const ChatEndpoint endpoint(say_one, ChatEndpoint::Behind::kIsOpenUntilTheQuestion);
  start(endpoint.url());
  const std::string question = R"({"stream":true,"x":")" + std::string(8 << 20, 'x') + "\"}";
  const auto end = std::chrono::steady_clock::now() + 60s;
  do {
    const auto chat = client_->ask(question, [this] { bell_.ring(); });
    EXPECT_EQ(hear(*chat), "One.");
    ASSERT_TRUE(outcome_) << outcome_.error().message;
  } while (endpoint.crossed() < 3 && std::chrono::steady_clock::now() < end);
  EXPECT_GE(endpoint.crossed(), 1);
}

TEST_F(ChatClientTest, AStatusIsToldWithoutItsWords) {
  for (const int status : {302, 400, 401, 403, 404, 429, 500, 503}) {
    const std::string message = fault_of([&](const ChatEndpoint::Answer& answer) {
      answer.begin(status);
      answer.chunk(std::string("the key ") + kKey + " is wrong");
    });
    EXPECT_THAT(message, HasSubstr(fmt::format("status {}", status)));
  }
  EXPECT_THAT(fault_of([](const ChatEndpoint::Answer& answer) { answer.send("HTTP/1.1 204 X\r\n\r\n"); }),
              HasSubstr("status 204"));
}

TEST_F(ChatClientTest, InvalidAnswerIsReported) {
  EXPECT_THAT(fault_of([](const ChatEndpoint::Answer& answer) {
                answer.begin();
                answer.chunk("data: <html>\n\n");
              }),
              HasSubstr("not a stream of chat completions"));
  EXPECT_THAT(fault_of([](const ChatEndpoint::Answer& answer) {
                answer.send("HTTP/1.1 200 X\r\nContent-Length: 15\r\n\r\n{\"choices\": []}");
              }),
              HasSubstr("not a stream of chat completions"));
  EXPECT_THAT(fault_of([](const ChatEndpoint::Answer& answer) { answer.send("what?\r\n\r\n"); }),
              HasSubstr("broke off"));
  EXPECT_THAT(fault_of([](const ChatEndpoint::Answer&) {}), HasSubstr("broke off"));
}

TEST_F(ChatClientTest, TruncationIsReportedBehindTheText) {
  const std::string message = fault_of([](const ChatEndpoint::Answer& answer) {
    answer.begin();
    answer.say("One.");
  });
  EXPECT_EQ(heard_, "One.");
  EXPECT_THAT(message, HasSubstr("broke off"));
}

// Within the time-out a slow machine has connected and told the first word.
TEST_F(ChatClientTest, SilentEndpointTimesOut) {
  const auto silent = [](const ChatEndpoint::Answer& answer) {
    while (!answer.is_left(10ms)) answer.chunk(": still thinking\n\n");  // these are no words
  };
  EXPECT_THAT(fault_of([](const ChatEndpoint::Answer& answer) { answer.is_left(60s); }, 6),
              HasSubstr("nothing for 6 s"));
  EXPECT_THAT(fault_of(
                  [&](const ChatEndpoint::Answer& answer) {
                    answer.begin();
                    silent(answer);
                  },
                  6),
              HasSubstr("nothing for 6 s"));
  EXPECT_THAT(fault_of(
                  [&](const ChatEndpoint::Answer& answer) {
                    answer.begin();
                    answer.say("One.");
                    silent(answer);
                  },
                  6),
              HasSubstr("nothing for 6 s"));
  EXPECT_EQ(heard_, "One.");
}

// Its text is all there, and what would end it does not come.
TEST_F(ChatClientTest, AWholeAnswerThatIsNotEndedIsWhole) {
  EXPECT_EQ(fault_of(
                [](const ChatEndpoint::Answer& answer) {
                  answer.begin();
                  answer.say("One.");
                  answer.chunk("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
                  answer.is_left(60s);
                },
                6),  // within which a slow machine has told its words
            "");
  EXPECT_TRUE(outcome_);
  EXPECT_EQ(heard_, "One.");
}

// The client's thread is held in the first answer's call meanwhile.
TEST_F(ChatClientTest, AbandonedQuestionIsNotSent) {
  const ChatEndpoint endpoint(say_one);
  start(endpoint.url());
  std::atomic<bool> is_held{false}, goes_on{false};
  const auto first = client_->ask("{}", [&] {
    is_held = true;
    while (!goes_on) std::this_thread::sleep_for(1ms);
  });
  while (!is_held) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 20; ++i) ask();
  const auto last = ask();
  goes_on = true;
  EXPECT_EQ(hear(*last), "One.");
  EXPECT_TRUE(outcome_);
  EXPECT_EQ(endpoint.connections(), 2);
}

TEST_F(ChatClientTest, AnAnswerHasALimit) {
  EXPECT_THAT(fault_of(
                  [](const ChatEndpoint::Answer& answer) {
                    answer.begin();
                    while (!answer.is_left(0ms)) answer.say(std::string(500, 'x'));
                  },
                  60, 4096),
              HasSubstr("more than 4 kB"));
  EXPECT_LE(heard_.size(), 4096u);
}

// The answer that waits for a slow reader is bounded by the length that the reader will take.
TEST_F(ChatClientTest, TooLongAnswerIsEnded) {
  std::atomic<int> left{0};
  const ChatEndpoint endpoint([&](const ChatEndpoint::Answer& answer) {
    answer.begin();
    while (!answer.is_left(0ms)) answer.say(std::string(500, 'x'));
    ++left;
  });
  auto client = ChatClient::start(
      {.url = endpoint.url() + "/chat/completions", .max_answer_bytes = 1 << 30, .max_text_bytes = 2000});
  ASSERT_TRUE(client) << client.error().message;
  client_ = std::move(*client);
  const auto chat = ask();
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (left == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(left, 1);
  EXPECT_GT(hear(*chat).size(), 2000u);
  EXPECT_TRUE(outcome_);
}

TEST_F(ChatClientTest, AStatusCountsThoughItsWordsDoNotCome) {
  EXPECT_THAT(fault_of(
                  [](const ChatEndpoint::Answer& answer) {
                    answer.begin(503);
                    answer.is_left(60s);
                  },
                  6),  // longer than a machine stands still before the status
              HasSubstr("status 503"));
}

TEST_F(ChatClientTest, UnreachableEndpointIsReported) {
  std::string url;
  {
    const ChatEndpoint gone([](const ChatEndpoint::Answer&) {});
    url = gone.url();
  }
  start(url);
  hear(*ask());
  ASSERT_FALSE(outcome_);
  EXPECT_THAT(outcome_.error().message, HasSubstr("cannot be reached"));
}

TEST_F(ChatClientTest, TheClientsEndIsTheAnswers) {
  const ChatEndpoint endpoint([](const ChatEndpoint::Answer& answer) { answer.is_left(60s); });
  start(endpoint.url());
  const auto first = ask(), second = ask();
  while (endpoint.requests().empty()) std::this_thread::yield();
  client_.reset();
  for (Chat* const chat : {first.get(), second.get()}) {
    hear(*chat);
    ASSERT_FALSE(outcome_);
    EXPECT_EQ(outcome_.error().code, Code::kCancelled);
  }
}

}  // namespace
}  // namespace syrinx::server::upstream
