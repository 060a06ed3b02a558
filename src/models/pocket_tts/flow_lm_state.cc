#include "models/pocket_tts/flow_lm_state.h"

#include <utility>

namespace syrinx::pocket {

Result<FlowLmState> FlowLmState::make(const FlowLmWeights& weights, size_t capacity) {
  if (capacity > kMaxPositions)
    return fail(Code::kLimitExceeded, "a stream of {} positions, the limit is {}; split the text", capacity,
                kMaxPositions);
  const nn::DecoderConfig& c = weights.shape;
  SYRINX_TRY(nn::KvCache cache, nn::KvCache::make({.type = c.cache,
                                                   .layers = c.layers,
                                                   .key_heads = c.key_heads,
                                                   .head_size = c.head_size,
                                                   .capacity = capacity}));
  return FlowLmState(std::move(cache));
}

Status FlowLmState::start_after(std::shared_ptr<const FlowLmState> voice) {
  if (!same_heads(*voice))
    return fail(Code::kInvalidArgument,
                "the voice has {} layers of {} x {} numbers, the model {} of {} x {}; it was made for another model",
                voice->layers, voice->key_heads, voice->head_size, layers, key_heads, head_size);
  if (voice->type != type)
    return fail(Code::kInvalidArgument, "the voice is in {}, the model in {}; make it under the model's precision",
                dtype_name(voice->type), dtype_name(type));
  if (voice->prefix != nullptr) return fail(Code::kInvalidArgument, "a stream that speaks cannot be a voice");
  if (voice->position + capacity > kMaxPositions)
    return fail(Code::kLimitExceeded,
                "a stream of {} positions, {} of them the voice's; the limit is {}; split the text",
                voice->position + capacity, voice->position, kMaxPositions);
  begin_behind(std::move(voice));
  return {};
}

}  // namespace syrinx::pocket
