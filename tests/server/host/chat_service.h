// A service with a language model that says what a test tells it to.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "server/service.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/chat/fake_chat_engine.h"
#include "tests/server/host/job_run.h"

namespace syrinx::server {

class ChatServiceTest : public testing::Test {
 protected:
  static constexpr double kPatienceMs = 60000;

  void SetUp() override {
    settings_.speech_model = settings_.recognition_model = "";
    settings_.chat_model = "talks";
    settings_.chat_slots = 2;
  }
  void TearDown() override {
    engine_->holds = false;
    service_.reset();
  }
  void start(RequestLog* log = nullptr) {
    service_.emplace(settings_, *ApiKeys::load({}), log);
    ASSERT_TRUE(service_->start());
    const auto model = ChatModel::of(settings_, {.checkpoint = "/secret/place/model.gguf"}, engine_);
    ASSERT_TRUE(model) << model.error().message;
    service_->ready(nullptr, nullptr, *model);
  }
  HttpReply post(const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.path = "/v1/chat/completions";
    request.id = "7";
    request.body = body;
    request.arrived_ns = system_clock().now_ns();
    return service_->answer(request);
  }
  std::string get(const std::string& path, const std::string& query = "") {
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    request.query = query;
    return service_->answer(request).body;
  }
  // The whole of an answer; its head is head_.
  std::string read(const HttpReply& reply) {
    if (!reply.stream) {
      head_ = reply;
      return reply.body;
    }
    std::string sent;
    const Stopwatch waited;
    for (;;) {
      const ReplyStream::News news = reply.stream->pop_news();
      sent += sent_bytes(*reply.stream);
      if (news.head != nullptr) head_ = *news.head;
      if (news.end != ReplyStream::End::kOpen) {
        has_finished_ = news.end == ReplyStream::End::kFinished;
        return head_.body + sent;
      }
      if (waited.elapsed_ms() > kPatienceMs) {
        ADD_FAILURE() << "no end has come";
        return sent;
      }
      std::this_thread::yield();
    }
  }
  Json answer(const std::string& body) {
    const std::string text = read(post(body));
    return parse_json(text, "the answer").value_or(Json());
  }
  void wait_for(const std::function<bool()>& is_so) {
    const Stopwatch waited;
    while (!is_so()) {
      ASSERT_LT(waited.elapsed_ms(), kPatienceMs);
      std::this_thread::yield();
    }
  }

  Settings settings_;
  const std::shared_ptr<FakeChatEngine> engine_ = std::make_shared<FakeChatEngine>();
  HttpReply head_;
  bool has_finished_ = false;
  std::optional<Service> service_;
};

}  // namespace syrinx::server
