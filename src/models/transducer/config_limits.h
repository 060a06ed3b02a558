// Limits of a configuration from any source.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/yaml_section.h"
#include "models/transducer/config.h"
#include "models/transducer/encoder_state.h"

namespace syrinx::transducer {

// Several times what any published checkpoint has.
inline constexpr size_t kMaxWidth = 8192, kMaxLayers = 128, kMaxHeads = 128, kMaxMels = 512, kMaxChannels = 4096;
inline constexpr size_t kMaxKernel = 63, kMaxFactor = 16, kMaxVocabulary = size_t{1} << 17, kMaxLstmLayers = 8;
inline constexpr size_t kMaxDurations = 16, kMaxDuration = 64, kMaxContexts = 64, kMaxContext = 1024;
inline constexpr size_t kMaxSymbols = 1000, kMaxPrompts = 4096, kMaxLabelBytes = 256;
// f32 values that a stream holds of one kind: what its first convolution gives for a chunk, its keys, its values, its
// gates.
inline constexpr size_t kMaxStreamValues = size_t{1} << 25;
// The same of a step of several streams, which are as many as keep to it: a step's scratch is one for all of them, and
// their states are made at load.
inline constexpr size_t kMaxStepValues = 2 * kMaxStreamValues;

// The largest part of a stream's state and a step's scratch (encoder_state.cc, subsampling.cc), in values.  The factors
// are too small for a product to overflow.
inline size_t stream_values(const EncoderConfig& c, AttentionContext context) {
  const size_t left = context.left < 0 ? 0 : static_cast<size_t>(context.left);
  const size_t chunk = static_cast<size_t>(context.right < 0 ? 0 : context.right) + 1;
  const size_t taps = c.striding ? 9 : 1;
  const size_t convolved = (c.factor * (chunk + 1) / 2 + 4) * c.halved(c.mels) * c.padded_channels() * taps;
  const size_t ahead = c.style == ContextStyle::kRegular ? chunk - 1 : 0;
  // Frames that a block holds back are fewer than its keys.
  const size_t keys = c.layers * c.width * (left + chunk + ahead);
  const size_t gated = c.layers * c.width * (c.kernel - 1 + chunk + EncoderState::kGatedSlide);
  return std::max({convolved, keys, gated});
}

// `key` is what the message names.
inline void check_stream_sizes(Section& section, std::string_view key, const EncoderConfig& c) {
  if (!c.cache_aware() && c.style != ContextStyle::kChunkedLimited) return;
  for (const AttentionContext& context : c.contexts) {
    const size_t values = stream_values(c, context);
    section.require(values <= kMaxStreamValues, Code::kLimitExceeded, key,
                    fmt::format("makes a stream hold {} values at once; at most {} can be", values, kMaxStreamValues));
  }
}

}  // namespace syrinx::transducer
