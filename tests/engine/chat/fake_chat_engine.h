// A language model that says what a test tells it to, a token at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/chat/answer_text.h"
#include "engine/chat/chat_engine.h"

namespace syrinx {

class FakeChatEngine final : public ChatEngine {
 public:
  // Counts the words of a conversation, and each message once more, as its tokens.
  static size_t tokens_of(const ChatRequest& request) {
    size_t tokens = 0;
    for (const text::ChatMessage& message : request.messages)
      tokens += 2 + static_cast<size_t>(std::count(message.content.begin(), message.content.end(), ' '));
    return tokens;
  }

  Result<std::unique_ptr<ChatAnswer>> start(ChatRequest request) override {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request);
    }
    if (refusal) return tl::unexpected(*refusal);
    SYRINX_TRY_VOID(check_chat_request(request));
    if (tokens_of(request) >= context())
      return fail(Code::kLimitExceeded, "the conversation has {} tokens, the limit is {}; leave older messages out",
                  tokens_of(request), context());
    if (open_.fetch_add(1) >= static_cast<int>(conversations())) {
      --open_;
      return fail(Code::kUnavailable, "{} conversations are answered already", conversations());
    }
    return std::make_unique<Answer>(*this, std::move(request));
  }

  std::vector<ChatRequest> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  const std::string& name() const override { return name_; }
  Precision precision() const override { return Precision::kInt8; }
  int threads() const override { return 1; }
  double load_ms() const override { return 12; }
  size_t context() const override { return most_tokens; }
  size_t conversations() const override { return 4; }
  ChatSampling sampling() const override { return {.temperature = 0.7f}; }
  StepFigures steps() const override { return figures; }
  size_t waiting() const override { return waits; }

  std::vector<std::string> tokens = {"Hel", "lo ", "there."};  // of every answer
  size_t most_tokens = 64, cached = 1;
  std::optional<Error> refusal, fault;  // of start(); of next() behind the first token
  std::atomic<bool> holds{false};       // next() waits behind the first token until it is not wanted
  std::atomic<int> open_{0};            // answers that exist
  StepFigures figures;
  size_t waits = 0;

 private:
  class Answer final : public ChatAnswer {
   public:
    Answer(FakeChatEngine& engine, ChatRequest request)
        : engine_(engine), request_(std::move(request)), text_(request_.stops) {}
    ~Answer() override { --engine_.open_; }

    Result<bool> next(std::string& text) override {
      while (engine_.holds && made_ > 0 && is_wanted()) std::this_thread::yield();
      if (!is_wanted()) return fail(Code::kCancelled, "the answer is not wanted any more");
      if (engine_.fault && made_ > 0) return tl::unexpected(*engine_.fault);
      const bool is_limited = request_.max_tokens > 0 && made_ + 1 >= request_.max_tokens;
      if (made_ == engine_.tokens.size()) {
        ++made_;
        return finish(ChatEnd::kStop, text);
      }
      if (text_.push(engine_.tokens[made_++], text)) return finish(ChatEnd::kStopText, text);
      return is_limited ? finish(ChatEnd::kMaxTokens, text) : Result<bool>(true);
    }
    ChatEnd end() const override { return end_; }
    ChatUsage usage() const override {
      return {.prompt_tokens = tokens_of(request_), .cached_tokens = engine_.cached, .answer_tokens = made_};
    }

   private:
    bool is_wanted() const { return !request_.is_wanted || request_.is_wanted(); }
    Result<bool> finish(ChatEnd end, std::string& text) {
      end_ = end;
      text_.finish(text);
      return false;
    }

    FakeChatEngine& engine_;
    const ChatRequest request_;
    AnswerText text_;
    size_t made_ = 0;
    ChatEnd end_ = ChatEnd::kOpen;
  };

  const std::string name_ = "fake";
  mutable std::mutex mutex_;
  std::vector<ChatRequest> asked_;
};

}  // namespace syrinx
