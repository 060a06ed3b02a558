// A chat template's outline: the statements and outputs that matter to a conversation without tools, in one spelling.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx::llama {

// One line each: `= EXPRESSION` for an output (neighbours joined, text among them as a string), and the statements
// `if`, `elif`, `else`, `endif`, `for`, `endfor`, `set`; any other stays behind a `?`.  Branches that are settled
// (jinja_condition.h) are followed or left out, and assignments to the variables of tools go.  Two templates of one
// outline render every such conversation alike.  kDataLoss for a malformed template.
Result<std::string> outline_jinja(std::string_view source, const std::string& name);

}  // namespace syrinx::llama
