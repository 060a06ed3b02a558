// Which tokens may come next (spec whisper.md, section 5; openai/whisper, decoding.py: SuppressBlank, SuppressTokens,
// ApplyTimestampRules).  Pure functions on logits; thread-safe; they allocate nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/whisper/tokens.h"

namespace syrinx::whisper {

struct Rules {
  std::vector<int32_t> suppressed;        // at every step: suppressed_tokens()
  std::vector<int32_t> suppressed_first;  // at the first step besides: a space alone, end of text
  bool timestamps = true;
  int32_t max_first_time = 50;  // steps of 0.02 s: a window begins within the first second
};

// Every id must be one of the model's vocabulary.
Rules make_rules(const text::ByteBpe& bpe, const Tokens& tokens, bool timestamps);

// Sets the logits [V] of what may not follow `sampled` (the tokens behind the prompt) to -infinity: times come in pairs
// but for one before the end of text, never decrease, and a closing time is later than its opening; where all times
// together are more probable than the most probable other token, a time is due.
void apply_rules(const Rules& rules, const Tokens& tokens, std::span<const int32_t> sampled, std::span<float> logits);

// log(sum(exp(values))), in double; -infinity for none.
double log_sum_exp(std::span<const float> values);

}  // namespace syrinx::whisper
