// A language model of Llama's kind as a ChatEngine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "engine/chat/chat_engine.h"
#include "engine/families/llama/conversation_pool.h"
#include "engine/families/llama/prompt_cache.h"
#include "engine/schedule/compute.h"
#include "models/llama/model.h"
#include "models/llama/tokenizer.h"
#include "nn/runner.h"

namespace syrinx {

class LlamaEngine final : public ChatEngine {
 public:
  static constexpr Precision kDefaultPrecision = Precision::kInt8;

  // Errors of llama::Model::load() and llama::Tokenizer::load(); kLimitExceeded for a context that the model lacks or a
  // cache that is too large; kDataLoss where vocabulary and weights disagree.
  static Result<std::shared_ptr<ChatEngine>> load(ChatEngineOptions options);

  Result<std::unique_ptr<ChatAnswer>> start(ChatRequest request) override;

  const std::string& name() const override { return files_.name; }
  Precision precision() const override { return model_->weights()->precision; }
  int threads() const override { return team_.size(); }
  double load_ms() const override { return load_ms_; }
  size_t context() const override { return context_; }
  size_t conversations() const override { return conversations_; }
  ChatSampling sampling() const override;
  StepFigures steps() const override { return queue_.steps(); }
  size_t waiting() const override { return pool_->waiting(); }

 private:
  LlamaEngine(std::shared_ptr<const llama::Model> model, llama::Tokenizer tokenizer, const ChatEngineOptions& options);
  Status make_slots();
  // The ids of the request's opening, if its conversation begins so and it is worth sharing.
  Result<std::vector<int32_t>> opening_of(const ChatRequest& request, const std::vector<int32_t>& prompt,
                                          const std::string& today) const;

  const ChatFiles files_;
  const std::shared_ptr<const llama::Model> model_;
  const llama::Tokenizer tokenizer_;
  const size_t conversations_;
  size_t context_ = 0;
  double load_ms_ = 0;

  const std::shared_ptr<Compute> compute_;
  StepQueue queue_;
  ThreadTeam team_;
  nn::Runner runner_;
  std::unique_ptr<llama::ConversationPool> pool_;  // all use of the team goes through this
  std::unique_ptr<llama::PromptCache> prompts_;
};

}  // namespace syrinx
