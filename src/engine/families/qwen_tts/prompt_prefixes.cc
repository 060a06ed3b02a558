#include "engine/families/qwen_tts/prompt_prefixes.h"

#include <algorithm>
#include <iterator>
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
  std::list<std::shared_ptr<const PromptPrefix>> dropped;  // whose memory is given back without the lock
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
    dropped.splice(dropped.end(), kept_, std::prev(kept_.end()));
  }
}

void PromptPrefixes::drop(std::span<const float> voice) {
  std::list<std::shared_ptr<const PromptPrefix>> dropped;
  const std::lock_guard lock(mutex_);
  for (auto at = kept_.begin(); at != kept_.end() && !voice.empty();) {
    const auto each = at++;
    if (!std::ranges::equal(voice, (*each)->voice)) continue;
    bytes_ -= (*each)->bytes();
    dropped.splice(dropped.end(), kept_, each);
  }
}

}  // namespace syrinx::qwen_tts
