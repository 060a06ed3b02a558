#include "engine/families/llama/llama_engine.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/memory.h"
#include "engine/families/llama/llama_answer.h"
#include "engine/threads.h"

namespace syrinx {
namespace {

// Where neither the folder nor the template's maker recommends any: those of llama.cpp's programs.
constexpr ChatSampling kUsualSampling{
    .temperature = 0.8f, .top_p = 0.95f, .min_p = 0.05f, .top_k = 40, .repetition_penalty = 1.0f};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return llama::chat_date(local.tm_year + 1900, local.tm_mon + 1, local.tm_mday);
}

}  // namespace

Result<std::shared_ptr<ChatEngine>> LlamaEngine::load(ChatEngineOptions options) {
  const Stopwatch watch;
  ThreadTeam packers(default_threads());
  SYRINX_TRY(llama::Tokenizer tokenizer, llama::Tokenizer::load(options.files.checkpoint));
  SYRINX_TRY(std::shared_ptr<const llama::Model> model,
             llama::Model::load(options.files.checkpoint, {.precision = options.precision.value_or(kDefaultPrecision),
                                                           .cache_folder = options.cache_folder,
                                                           .team = &packers}));
  const size_t vocabulary = model->config().vocabulary;
  if (tokenizer.bpe().size() > vocabulary)
    return fail(Code::kDataLoss, "'{}' has a vocabulary of {} tokens and weights for {}", options.files.name,
                tokenizer.bpe().size(), vocabulary);
  std::shared_ptr<LlamaEngine> engine(new LlamaEngine(std::move(model), std::move(tokenizer), options));
  const size_t known = std::min(engine->model_->config().context, nn::kMaxPositions);
  if (options.context > known)
    return fail(Code::kLimitExceeded, "a context of {} tokens; '{}' can have {} at most here", options.context,
                options.files.name, known);
  engine->context_ = options.context > 0 ? options.context : std::min(known, ChatEngineOptions::kDefaultContext);
  SYRINX_TRY_VOID(engine->make_slots());
  engine->load_ms_ = watch.elapsed_ms();
  return std::shared_ptr<ChatEngine>(std::move(engine));
}

LlamaEngine::LlamaEngine(std::shared_ptr<const llama::Model> model, llama::Tokenizer tokenizer,
                         const ChatEngineOptions& options)
    : files_(options.files),
      model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      conversations_(options.conversations),
      compute_(options.compute != nullptr ? options.compute : Compute::shared()),
      queue_(compute_->scheduler()),
      team_(compute_->team(options.threads)),
      runner_(team_),
      pool_(std::make_unique<llama::ConversationPool>(model_->weights(), runner_, queue_, options.conversations)) {}

Status LlamaEngine::make_slots() {
  const size_t vocabulary = model_->config().vocabulary;
  std::vector<llama::ConversationSlot> slots;
  for (size_t n = 0; n < conversations_; ++n) {
    SYRINX_TRY(nn::KvCache cache, pool_->model().make_cache(context_));
    const uint64_t most = total_memory_bytes();
    if (most > 0 && conversations_ * cache.bytes() > most)
      return fail(Code::kLimitExceeded,
                  "{} conversations of {} tokens need {} MB, the machine has {}; give fewer conversations or a shorter "
                  "context",
                  conversations_, context_, conversations_ * cache.bytes() >> 20, most >> 20);
    slots.push_back({.cache = std::move(cache),
                     .tokens = {},
                     .sampler = nn::Sampler(vocabulary),
                     .logits = std::vector<float>(vocabulary)});
    slots.back().tokens.reserve(context_);
  }
  prompts_ = std::make_unique<llama::PromptCache>(std::move(slots), context_);
  return {};
}

ChatSampling LlamaEngine::sampling() const {
  const auto& own = tokenizer_.sampling();
  if (!own) return kUsualSampling;
  return {.temperature = own->temperature,
          .top_p = own->top_p,
          .min_p = 0.0f,
          .top_k = own->top_k,
          .repetition_penalty = own->repetition_penalty};
}

Result<std::vector<int32_t>> LlamaEngine::opening_of(const ChatRequest& request, const std::vector<int32_t>& prompt,
                                                     const std::string& today) const {
  SYRINX_TRY(std::vector<int32_t> opening, tokenizer_.encode_opening(request.messages.front(), today));
  opening.resize(llama::common_beginning(opening, prompt));
  const bool is_shared = opening.size() >= llama::PromptCache::kLeastOpening && opening.size() < prompt.size();
  return is_shared ? std::move(opening) : std::vector<int32_t>();
}

Result<std::unique_ptr<ChatAnswer>> LlamaEngine::start(ChatRequest request) {
  SYRINX_TRY_VOID(check_chat_request(request));
  const std::string date = today();
  SYRINX_TRY(std::vector<int32_t> prompt, tokenizer_.encode(request.messages, date));
  if (prompt.size() >= context_)
    return fail(Code::kLimitExceeded,
                "the conversation has {} tokens, and with an answer the limit is {}; leave older messages out",
                prompt.size(), context_);
  SYRINX_TRY(std::vector<int32_t> opening, opening_of(request, prompt, date));
  llama::ConversationSlot* const slot = prompts_->take(prompt, opening.size());
  if (slot == nullptr)
    return fail(Code::kUnavailable, "all {} conversations are being answered; ask again when one has its answer",
                conversations_);
  return std::make_unique<LlamaAnswer>(
      LlamaAnswer::Parts{
          .pool = *pool_, .prompts = *prompts_, .tokenizer = tokenizer_, .name = files_.name, .usual = sampling()},
      *slot, std::move(request), std::move(prompt), std::move(opening));
}

}  // namespace syrinx
