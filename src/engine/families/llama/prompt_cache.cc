#include "engine/families/llama/prompt_cache.h"

#include <algorithm>

namespace syrinx::llama {

size_t common_beginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

PromptCache::PromptCache(std::vector<ConversationSlot> slots, size_t context)
    : context_(context), slots_(std::move(slots)) {
  for (ConversationSlot& slot : slots_) free_.push_back(&slot);
}

ConversationSlot* PromptCache::take(std::span<const int32_t> tokens, size_t opening) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  const auto gain = [&](const ConversationSlot* slot) {
    const size_t common = common_beginning(slot->tokens, tokens);
    const auto known = static_cast<ptrdiff_t>(common) - static_cast<ptrdiff_t>(opening);
    return std::max<ptrdiff_t>(known - static_cast<ptrdiff_t>(slot->tokens.size() - common), 0);
  };
  const auto best = std::max_element(free_.begin(), free_.end(), [&](const auto* a, const auto* b) {
    const ptrdiff_t of_a = gain(a), of_b = gain(b);
    return of_a != of_b ? of_a < of_b : a->used > b->used;
  });
  ConversationSlot* const slot = *best;
  free_.erase(best);
  return slot;
}

void PromptCache::give_back(ConversationSlot& slot) {
  const std::lock_guard lock(mutex_);
  slot.used = ++answers_;
  free_.push_back(&slot);
}

std::shared_ptr<const Opening> PromptCache::find_kept(std::span<const int32_t> tokens) {
  const auto found = std::ranges::find_if(
      openings_, [&](const std::shared_ptr<const Opening>& each) { return std::ranges::equal(each->tokens, tokens); });
  if (found == openings_.end()) return nullptr;
  openings_.splice(openings_.begin(), openings_, found);
  return openings_.front();
}

std::shared_ptr<const Opening> PromptCache::find(std::span<const int32_t> tokens) {
  const std::lock_guard lock(mutex_);
  return find_kept(tokens);
}

std::shared_ptr<const Opening> PromptCache::keep(std::shared_ptr<const Opening> opening) {
  const std::lock_guard lock(mutex_);
  if (auto kept = find_kept(opening->tokens)) return kept;
  openings_.push_front(std::move(opening));
  if (openings_.size() > kMaxOpenings) openings_.pop_back();
  return openings_.front();
}

}  // namespace syrinx::llama
