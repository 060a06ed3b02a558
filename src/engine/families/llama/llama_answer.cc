#include "engine/families/llama/llama_answer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace syrinx {
namespace {

nn::SamplerSettings settings_of(const ChatSampling& asked, const ChatSampling& usual) {
  return {.temperature = asked.temperature.value_or(*usual.temperature),
          .top_k = static_cast<size_t>(asked.top_k.value_or(*usual.top_k)),
          .top_p = asked.top_p.value_or(*usual.top_p),
          .min_p = asked.min_p.value_or(*usual.min_p),
          .penalty = asked.repetition_penalty.value_or(*usual.repetition_penalty)};
}

}  // namespace

LlamaAnswer::LlamaAnswer(const Parts& parts, llama::ConversationSlot& slot, ChatRequest request,
                         std::vector<int32_t> prompt, std::vector<int32_t> opening)
    : parts_(parts),
      slot_(slot),
      request_(std::move(request)),
      prompt_(std::move(prompt)),
      opening_(std::move(opening)),
      settings_(settings_of(request_.sampling, parts.usual)),
      text_(request_.stops) {
  usage_.prompt_tokens = prompt_.size();
}

// An exception of a pass may have left it with fewer.
LlamaAnswer::~LlamaAnswer() {
  slot_.tokens.resize(std::min(slot_.tokens.size(), slot_.cache.position));
  parts_.prompts.give_back(slot_);
}

Status LlamaAnswer::read(std::span<const int32_t> ids, nn::KvCache& cache, std::span<float> logits) {
  const bool is_read = parts_.pool.read(
      {.ids = ids, .cache = &cache, .logits = logits, .is_batch = request_.is_batch, .is_wanted = &request_.is_wanted});
  return is_read ? Status() : fail(Code::kCancelled, "the answer is not wanted any more");
}

Status LlamaAnswer::read_next(std::span<const int32_t> ids, std::span<float> logits) {
  slot_.tokens.insert(slot_.tokens.end(), ids.begin(), ids.end());
  Status status = read(ids, slot_.cache, logits);
  slot_.tokens.resize(slot_.cache.position);  // of a reading that ended early
  return status;
}

// An opening that no conversation has read yet is read for all; of those that are read at once one stays.
Status LlamaAnswer::begin_behind_opening() {
  std::shared_ptr<const llama::Opening> opening = parts_.prompts.find(opening_);
  usage_.cached_tokens = opening != nullptr ? opening_.size() : 0;
  if (opening == nullptr) {
    SYRINX_TRY(nn::KvCache cache, parts_.pool.model().make_cache(opening_.size()));
    SYRINX_TRY_VOID(read(opening_, cache, {}));
    opening = parts_.prompts.keep(std::make_shared<llama::Opening>(llama::Opening{opening_, std::move(cache)}));
  }
  slot_.cache.begin_behind(std::shared_ptr<const nn::KvCache>(opening, &opening->cache));
  slot_.tokens = opening_;
  return {};
}

Status LlamaAnswer::read_prompt() {
  // The last token is read in any case, for what follows it, and by itself: a pass of one row rounds otherwise than one
  // of many, and the answer must not depend on how much is known.
  const size_t known = std::min(llama::common_beginning(slot_.tokens, prompt_), prompt_.size() - 1);
  if (known > opening_.size() && known > slot_.cache.shared()) {
    slot_.cache.truncate(known);
    slot_.tokens.resize(known);
    usage_.cached_tokens = known;
  } else if (!opening_.empty()) {
    SYRINX_TRY_VOID(begin_behind_opening());
  } else {
    slot_.cache.reset();
    slot_.tokens.clear();
  }
  const std::span<const int32_t> rest = std::span(prompt_).subspan(slot_.tokens.size());
  if (rest.size() > 1) SYRINX_TRY_VOID(read_next(rest.first(rest.size() - 1), {}));
  return read_next(rest.last(1), slot_.logits);
}

Result<bool> LlamaAnswer::next(std::string& text) {
  if (fault_) return tl::unexpected(*fault_);
  if (end_ != ChatEnd::kOpen) return false;
  auto goes_on = next_token(text);
  if (!goes_on) fault_ = goes_on.error();
  return goes_on;
}

Result<bool> LlamaAnswer::next_token(std::string& text) {
  SYRINX_TRY_VOID(last_ == nn::Sampler::kNone ? read_prompt() : read_next({&last_, 1}, slot_.logits));
  // The weights may have rows that the vocabulary has no tokens for.
  std::fill(slot_.logits.begin() + static_cast<ptrdiff_t>(parts_.tokenizer.bpe().size()), slot_.logits.end(),
            -std::numeric_limits<float>::infinity());
  const auto frame = static_cast<uint32_t>(usage_.answer_tokens);
  last_ = slot_.sampler.draw(slot_.logits, settings_, slot_.tokens, {.seed = request_.seed, .frame = frame});
  if (last_ == nn::Sampler::kNone)
    return fail(Code::kDataLoss, "'{}' computes numbers that are none: its weights are damaged; fetch it anew",
                parts_.name);
  ++usage_.answer_tokens;
  return take(last_, text);
}

bool LlamaAnswer::take(int32_t token, std::string& text) {
  const bool is_ended = parts_.tokenizer.ends(token);
  if (is_ended)
    end_ = ChatEnd::kStop;
  else if (text_.push(parts_.tokenizer.bytes(token), text))
    end_ = ChatEnd::kStopText;
  else if (usage_.answer_tokens == request_.max_tokens)
    end_ = ChatEnd::kMaxTokens;
  else if (slot_.cache.room() == 0 || usage_.prompt_tokens + usage_.answer_tokens >= parts_.prompts.context())
    end_ = ChatEnd::kContext;
  else if (loop_.push(token))
    end_ = ChatEnd::kLoop;
  if (end_ != ChatEnd::kOpen) text_.finish(text);
  return end_ == ChatEnd::kOpen;
}

}  // namespace syrinx
