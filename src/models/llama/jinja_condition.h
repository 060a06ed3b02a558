// Conditions of a chat template, as far as they are settled for every conversation that is rendered.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/llama/jinja_pieces.h"

namespace syrinx::llama {

struct JinjaCondition {
  enum class Truth { kFalse, kTrue, kOpen };
  Truth truth = Truth::kOpen;
  std::string text;                       // kOpen: the parts that are open, in one spelling
  std::vector<std::string> alternatives;  // kOpen: the text's parts between its outermost `or`
};

inline constexpr int kMaxConditionDepth = 32;  // of brackets and `not`

// Settled: there are no tools, roles of tools or reasoning apart from the content; contents are texts;
// thinking is off; add_generation_prompt and strftime_now are defined.  `and`, `or`, `not` and brackets are followed,
// and any other condition is open as a whole.  So is one beyond kMaxConditionDepth.
JinjaCondition settle_condition(std::span<const JinjaToken> tokens);

}  // namespace syrinx::llama
