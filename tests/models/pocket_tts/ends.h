// Where a chunk ends in each precision, on 20 texts.  A narrow model is fed the latents that f32 spoke, so that each of
// its logits stands for itself; and it also speaks alone, from the same noise.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/precision.h"

namespace syrinx::pocket {

inline constexpr std::array kNarrowPrecisions = {Precision::kInt8, Precision::kInt4};

struct TextEnds {
  std::string text;
  size_t tokens = 0;
  // Logits of every step that the text's length allows, whatever they say of an end.
  std::vector<float> exact;                                          // of f32
  std::array<std::vector<float>, kNarrowPrecisions.size()> forced;   // fed with f32's latents
  std::array<std::vector<float>, kNarrowPrecisions.size()> running;  // alone
};

// Each text is one chunk behind the voice of the recording (as prepared for the encoder), its noise Philox with the
// text's number as seed.  With a clearance that is not 0 the seed is the first of 200 for which f32 ends, and all its
// logits that decide that stay that far from the threshold: an end that hangs on less hangs on rounding.
// `checkpoint` as for Model::load.  kNotFound: no such seed.
Result<std::vector<TextEnds>> speak_texts(const std::string& checkpoint, std::span<const float> recording,
                                          float clearance, int threads);

// The step at which such logits end a chunk by the rules of speech_end.h.
std::optional<size_t> end_step(std::span<const float> logits, float threshold);

// How a narrow model's end compares with f32's on one text.
struct EndComparison {
  std::optional<size_t> exact, narrow;
  // At the first of the two ends, where they differ: how far f32's logit is from the threshold, and the narrow one's
  // from f32's.  The end moves where the second is larger.
  float margin = 0, error = 0;
  bool same() const { return exact == narrow; }
};
EndComparison compare_ends(std::span<const float> exact, std::span<const float> narrow, float threshold);

}  // namespace syrinx::pocket
