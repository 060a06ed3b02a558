#include "engine/families/qwen_tts/prompt_prefixes.h"

#include <algorithm>
#include <utility>

namespace syrinx::qwen_tts {

std::shared_ptr<const PromptPrefix> PromptPrefixes::find(const Prompt& prompt) {
  if (PromptPrefix::positions_of(prompt) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& each) { return each->begins(prompt); });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return kept_.front();
}

void PromptPrefixes::keep(std::shared_ptr<const PromptPrefix> prefix) {
  if (prefix == nullptr || prefix->bytes() > max_bytes_) return;
  const std::lock_guard lock(mutex_);
  // Several pieces may have read the same one at once.
  const auto is_same = [&](const auto& each) {
    return each->positions == prefix->positions && each->voice == prefix->voice && each->codes == prefix->codes;
  };
  if (std::any_of(kept_.begin(), kept_.end(), is_same)) return;
  bytes_ += prefix->bytes();
  kept_.push_front(std::move(prefix));
  while (bytes_ > max_bytes_) {
    bytes_ -= kept_.back()->bytes();
    kept_.pop_back();
  }
}

void PromptPrefixes::drop(std::span<const float> voice) {
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [&](const auto& each) {
    if (voice.empty() || !std::equal(voice.begin(), voice.end(), each->voice.begin(), each->voice.end())) return false;
    bytes_ -= each->bytes();
    return true;
  });
}

}  // namespace syrinx::qwen_tts
