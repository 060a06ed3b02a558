#include "server/upstream/local_replies.h"

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "server/http/waker.h"
#include "server/upstream/capped_reply.h"
#include "server/upstream/chat_request.h"

namespace syrinx::server::upstream {
namespace {

constexpr const char* kTooLong = "max_output_tokens";  // as OpenAI's interface calls it

// Text that the slot's thread has made, until the session takes it.
struct Exchange {
  Waker waker;
  std::mutex mutex;
  std::string text;  // the following by mutex
  bool has_ended = false;
  const char* cut_short = nullptr;
  std::optional<Error> fault;
};

class LocalSink final : public ChatSink {
 public:
  explicit LocalSink(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  Status begin() override { return {}; }
  Status take(std::string_view text) override {
    {
      const std::lock_guard lock(exchange_->mutex);
      exchange_->text += text;
    }
    exchange_->waker.tell();
    return {};
  }
  Status finish(ChatEnd end, const ChatUsage& /*usage*/) override {
    const std::lock_guard lock(exchange_->mutex);
    exchange_->cut_short = is_whole(end) ? nullptr : kTooLong;
    return {};
  }
  bool fail(const HttpError& error) override {
    const std::lock_guard lock(exchange_->mutex);
    exchange_->fault = {error.status < 500 ? Code::kInvalidArgument : Code::kUnavailable, error.message};
    return true;
  }
  void end(bool complete) override {
    {
      const std::lock_guard lock(exchange_->mutex);
      exchange_->has_ended = true;
      if (!complete && !exchange_->fault) exchange_->fault = {Code::kUnavailable, "the answer was given up; ask again"};
    }
    exchange_->waker.tell();
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
};

class LocalReply final : public realtime::Reply {
 public:
  LocalReply(std::shared_ptr<Exchange> exchange, std::shared_ptr<ReplyStream> stream)
      : exchange_(std::move(exchange)), stream_(std::move(stream)) {}
  ~LocalReply() override {
    exchange_->waker.set({});
    stream_->cancel();
  }

  Result<bool> take(std::string& text) override {
    exchange_->waker.taken();
    const std::lock_guard lock(exchange_->mutex);
    text += std::exchange(exchange_->text, {});
    if (!exchange_->has_ended) return true;
    if (exchange_->fault) return tl::unexpected(*exchange_->fault);
    return false;
  }
  const char* cut_short() const override {
    const std::lock_guard lock(exchange_->mutex);
    return exchange_->cut_short;
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<ReplyStream> stream_;
};

// As an upstream that cannot be reached: the session goes on, and the question may be repeated.
class FailedReply final : public realtime::Reply {
 public:
  explicit FailedReply(std::string why) : fault_{Code::kUnavailable, std::move(why)} {}
  Result<bool> take(std::string& /*text*/) override { return tl::unexpected(fault_); }

 private:
  const Error fault_;
};

text::ChatRole role_of(std::string_view role) {
  if (role == "system") return text::ChatRole::kSystem;
  return role == "assistant" ? text::ChatRole::kAssistant : text::ChatRole::kUser;
}

}  // namespace

LocalReplies::LocalReplies(LocalUpstream upstream, Host& host) : upstream_(std::move(upstream)), host_(host) {}

Result<std::unique_ptr<realtime::Reply>> LocalReplies::start(realtime::Prompt prompt, std::function<void()> wake) {
  if (!asks_something(prompt)) return tl::unexpected(nothing_asked());
  ChatOrder order{.event = "answer", .model = upstream_.model, .drops_oldest = true};
  for (realtime::Turn& turn : turns_to_send(prompt, upstream_.form))
    order.request.messages.push_back({.role = role_of(turn.role), .content = std::move(turn.text)});
  order.id = std::move(prompt.id);
  order.request.max_tokens = static_cast<size_t>(prompt.max_tokens);
  order.request.seed = static_cast<uint64_t>(system_clock().now_ns());
  order.arrived_ns = system_clock().now_ns();
  auto exchange = std::make_shared<Exchange>();
  exchange->waker.set(std::move(wake));
  auto job = host_.start_chat(std::move(order), std::make_unique<LocalSink>(exchange));
  if (!job) return std::make_unique<FailedReply>(job.error().message);
  auto answer = std::make_unique<LocalReply>(std::move(exchange), (*job)->reply());
  return std::make_unique<CappedReply>(std::move(answer), upstream_.max_characters);
}

}  // namespace syrinx::server::upstream
