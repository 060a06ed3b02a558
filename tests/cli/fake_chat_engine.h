// A language model whose answers are given: a piece a token, a word of the messages a token of the prompt.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/chat/chat_engine.h"

namespace syrinx {

inline size_t count_words(const std::vector<text::ChatMessage>& messages) {
  size_t words = 0;
  for (const text::ChatMessage& message : messages)
    words += 1 + static_cast<size_t>(std::count(message.content.begin(), message.content.end(), ' '));
  return words;
}

class FakeChatEngine : public ChatEngine {
 public:
  std::vector<std::string> pieces = {"yes", ", ", "sir"};
  ChatEnd end = ChatEnd::kStop;
  std::function<Status(size_t)> before_piece = [](size_t) { return Status(); };
  std::function<void()> before_start = [] {};
  size_t context_tokens = 100;
  std::vector<ChatRequest> requests = {};  // that were taken

  Result<std::unique_ptr<ChatAnswer>> start(ChatRequest request) override {
    before_start();
    if (is_busy_) return fail(Code::kUnavailable, "1 conversation is answered already");
    SYRINX_TRY_VOID(check_chat_request(request));
    const size_t words = count_words(request.messages);
    if (words > context_tokens) return fail(Code::kLimitExceeded, "a conversation of {} tokens", words);
    requests.push_back(request);
    return std::make_unique<Answer>(*this, words);
  }
  const std::string& name() const override { return name_; }
  Precision precision() const override { return Precision::kInt8; }
  int threads() const override { return 2; }
  double load_ms() const override { return 3; }
  size_t context() const override { return context_tokens; }
  size_t conversations() const override { return 1; }
  ChatSampling sampling() const override { return {}; }
  StepFigures steps() const override { return {}; }
  size_t waiting() const override { return 0; }

 private:
  class Answer : public ChatAnswer {
   public:
    Answer(FakeChatEngine& engine, size_t words) : engine_(engine), words_(words) { engine_.is_busy_ = true; }
    ~Answer() override { engine_.is_busy_ = false; }
    Result<bool> next(std::string& text) override {
      SYRINX_TRY_VOID(engine_.before_piece(told_));
      if (told_ < engine_.pieces.size()) text += engine_.pieces[told_];
      return ++told_ < engine_.pieces.size();
    }
    ChatEnd end() const override { return told_ < engine_.pieces.size() ? ChatEnd::kOpen : engine_.end; }
    ChatUsage usage() const override { return {words_, 0, told_}; }

   private:
    FakeChatEngine& engine_;
    size_t words_, told_ = 0;
  };

  const std::string name_ = "fake";
  bool is_busy_ = false;
};

}  // namespace syrinx
