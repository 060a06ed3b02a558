// An answer of LlamaEngine: reads what is new of the prompt, then draws a token with each call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/chat/answer_loop.h"
#include "engine/chat/answer_text.h"
#include "engine/chat/chat_engine.h"
#include "engine/families/llama/conversation_pool.h"
#include "engine/families/llama/prompt_cache.h"
#include "models/llama/tokenizer.h"
#include "nn/sampler.h"

namespace syrinx {

class LlamaAnswer final : public ChatAnswer {
 public:
  struct Parts {  // of the engine
    llama::ConversationPool& pool;
    llama::PromptCache& prompts;
    const llama::Tokenizer& tokenizer;
    const std::string& name;
    ChatSampling usual;
  };
  // Gives the slot back in the end.  `opening`: a beginning of the prompt that is worth sharing, or none.
  LlamaAnswer(const Parts& parts, llama::ConversationSlot& slot, ChatRequest request, std::vector<int32_t> prompt,
              std::vector<int32_t> opening);
  ~LlamaAnswer() override;

  Result<bool> next(std::string& text) override;
  ChatEnd end() const override { return end_; }
  ChatUsage usage() const override { return usage_; }

 private:
  Status read_prompt();
  Status begin_behind_opening();
  Status read(std::span<const int32_t> ids, nn::KvCache& cache, std::span<float> logits);
  Status read_next(std::span<const int32_t> ids, std::span<float> logits);  // the latter of the last one; may be empty
  Result<bool> next_token(std::string& text);
  bool take(int32_t token, std::string& text);

  const Parts parts_;
  llama::ConversationSlot& slot_;
  const ChatRequest request_;
  const std::vector<int32_t> prompt_, opening_;
  const nn::SamplerSettings settings_;
  std::optional<Error> fault_;  // the answer has ended by it
  AnswerText text_;
  AnswerLoop loop_;
  ChatEnd end_ = ChatEnd::kOpen;
  ChatUsage usage_;
  int32_t last_ = nn::Sampler::kNone;  // drawn, and not read yet
};

}  // namespace syrinx
