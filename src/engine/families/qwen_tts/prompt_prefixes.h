// Beginnings of prompts that many pieces have: the same voice, language, instructions and layout.  The ones used last
// are kept, up to kMaxBytes together; one that streams still use lives until they end.  Any thread.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "models/qwen_tts/frame_generator.h"

namespace syrinx::qwen_tts {

class PromptPrefixes {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;  // 600 positions of 0.6B or 1.7B, cached in bf16

  explicit PromptPrefixes(size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}
  // Null: none begins this prompt.
  std::shared_ptr<const PromptPrefix> find(const Prompt& prompt);
  // Null, or one that is too large, is not kept.
  void keep(std::shared_ptr<const PromptPrefix> prefix);
  // Those of a recorded voice, [D].
  void drop(std::span<const float> voice);

 private:
  const size_t max_bytes_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const PromptPrefix>> kept_;  // the last used first
  size_t bytes_ = 0;                                     // of all of them
};

}  // namespace syrinx::qwen_tts
