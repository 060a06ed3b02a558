// How sure a model was of a label, from the logits that it chose it by (spec transducer-asr.md, section 4.5; the
// maker's nemo/collections/asr/parts/utils/asr_confidence_utils.py).
#pragma once

#include <cstdint>
#include <span>

namespace syrinx::transducer {

enum class ConfidenceMeasure : uint8_t {
  kNone,        // nothing is computed: 0
  kMaxProb,     // (p n - 1) / (n - 1) of the greatest probability p among n: 0 where all are alike
  kTsallisExp,  // the maker's default: exp of the negated Tsallis entropy of order alpha, put onto 0 to 1
};

struct ConfidenceConfig {
  ConfidenceMeasure measure = ConfidenceMeasure::kNone;
  float alpha = 0.33f;  // > 0; 1 makes Tsallis' entropy Shannon's.  kMaxProb ignores it
};

// Confidence of logits of any scale, two or more, with blank and without durations.  scratch has room for as many.
// About 0 to 1; NaN if a logit is.
float confidence(const ConfidenceConfig& config, std::span<const float> logits, std::span<float> scratch);

}  // namespace syrinx::transducer
