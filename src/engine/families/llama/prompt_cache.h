// The tokens that conversations have read and may read again.  Each keeps the keys and values of its last answer: a
// request that begins alike reads only what follows.  The openings by messages of the system are kept by themselves, so
// that any number of conversations share one.  Any thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "nn/kv_cache.h"
#include "nn/sampler.h"

namespace syrinx::llama {

// One conversation at a time; its owner alone uses it.
struct ConversationSlot {
  nn::KvCache cache;
  std::vector<int32_t> tokens;  // that the cache has read
  nn::Sampler sampler;
  std::vector<float> logits;  // [V]
  uint64_t used = 0;          // when it was given back, in the order of answers
};

struct Opening {
  std::vector<int32_t> tokens;
  nn::KvCache cache;  // is a prefix
};

class PromptCache {
 public:
  static constexpr size_t kMaxOpenings = 4;
  static constexpr size_t kLeastOpening = 16;  // tokens; a shorter one is read again sooner than it is looked up

  // `context`: tokens of a conversation.
  PromptCache(std::vector<ConversationSlot> slots, size_t context);
  size_t context() const { return context_; }

  // The free slot that has read most of the beginning of `tokens` behind the first `opening`, if that is more than what
  // it would have to forget: else another conversation's memory goes.  Then the one that was used longest ago; null:
  // none is free.
  ConversationSlot* take(std::span<const int32_t> tokens, size_t opening);
  void give_back(ConversationSlot& slot);

  // Null: there is none of these tokens.
  std::shared_ptr<const Opening> find(std::span<const int32_t> tokens);
  // In place of the one that was used longest ago; the one of the same tokens that is kept already, if there is one.
  std::shared_ptr<const Opening> keep(std::shared_ptr<const Opening> opening);

 private:
  std::shared_ptr<const Opening> find_kept(std::span<const int32_t> tokens);  // by mutex_

  const size_t context_;
  std::mutex mutex_;
  std::vector<ConversationSlot> slots_;
  std::vector<ConversationSlot*> free_;
  uint64_t answers_ = 0;
  std::list<std::shared_ptr<const Opening>> openings_;  // the last used first
};

// How many tokens both begin with.
size_t common_beginning(std::span<const int32_t> a, std::span<const int32_t> b);

}  // namespace syrinx::llama
