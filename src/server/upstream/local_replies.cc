#include "server/upstream/local_replies.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

// Where no slot is free, as of an answer that has just been cancelled and ends with its step, it tries again for a
// while.
class LocalReply final : public realtime::Reply {
 public:
  LocalReply(Host& host, const Clock& clock, ChatOrder order, std::shared_ptr<Exchange> exchange)
      : host_(host),
        clock_(clock),
        order_(std::move(order)),
        exchange_(std::move(exchange)),
        until_ns_(clock.now_ns() + kPatienceNs) {
    try_start();
  }
  ~LocalReply() override {
    exchange_->waker.set({});
    if (stream_) stream_->cancel();
  }

  Result<bool> take(std::string& text) override {
    exchange_->waker.taken();
    if (waits_for_slot() && clock_.now_ns() >= next_ns_) try_start();
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
  std::optional<std::chrono::nanoseconds> looks_again_in() const override {
    if (!waits_for_slot()) return std::nullopt;
    return std::chrono::nanoseconds(std::max<int64_t>(next_ns_ - clock_.now_ns(), 0));
  }

 private:
  static constexpr int64_t kPatienceNs = 2'000'000'000;
  static constexpr int64_t kFirstWaitNs = 10'000'000, kLongestWaitNs = 160'000'000;  // each is twice the one before

  bool waits_for_slot() const { return next_ns_ > 0; }
  void try_start() {
    next_ns_ = 0;
    const int64_t now_ns = clock_.now_ns();
    const auto job = host_.start_chat(order_, std::make_unique<LocalSink>(exchange_));
    if (job) {
      stream_ = (*job)->reply();
      order_ = {};
    } else if (job.error().status == 503 && job.error().code == "no_free_slot" && now_ns < until_ns_) {
      next_ns_ = now_ns + wait_ns_;
      wait_ns_ = std::min(2 * wait_ns_, kLongestWaitNs);
    } else {
      // As an upstream that cannot be reached: the session goes on, and the question may be repeated.
      const std::lock_guard lock(exchange_->mutex);
      exchange_->has_ended = true;
      exchange_->fault = {Code::kUnavailable, job.error().message};
    }
  }

  Host& host_;
  const Clock& clock_;
  ChatOrder order_;
  const std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<ReplyStream> stream_;  // null: it has no slot
  const int64_t until_ns_;
  int64_t wait_ns_ = kFirstWaitNs;
  int64_t next_ns_ = 0;  // of the next try; 0: there is none
};

text::ChatRole role_of(std::string_view role) {
  if (role == "system") return text::ChatRole::kSystem;
  return role == "assistant" ? text::ChatRole::kAssistant : text::ChatRole::kUser;
}

}  // namespace

LocalReplies::LocalReplies(LocalUpstream upstream, Host& host, const Clock& clock)
    : upstream_(std::move(upstream)), host_(host), clock_(clock) {}

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
  auto answer = std::make_unique<LocalReply>(host_, clock_, std::move(order), std::move(exchange));
  return std::make_unique<CappedReply>(std::move(answer), upstream_.max_characters);
}

}  // namespace syrinx::server::upstream
