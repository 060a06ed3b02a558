// Jinja's lexical layer: a template cut into text, outputs and statements.  Nothing is run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace syrinx::llama {

struct JinjaToken {
  enum class Kind { kName, kNumber, kString, kOperator };
  Kind kind = Kind::kName;
  std::string text;      // of a string: without quotes and escapes
  bool is_exact = true;  // false: a string with an escape beyond \n \r \t \\ \' \", which stays as it is written

  bool is(std::string_view wanted) const { return kind != Kind::kString && text == wanted; }
};

struct JinjaPiece {
  enum class Kind { kData, kOutput, kStatement };
  Kind kind = Kind::kData;
  std::string data;                // kData, never empty
  std::vector<JinjaToken> tokens;  // kOutput {{ }} and kStatement {% %}
};

// Blanks are stripped as transformers has it (trim_blocks, lstrip_blocks, `-` and `+`); comments go.  kDataLoss for a
// tag, string or bracket without its end.  `name` stands in messages.  Linear in the template's size.
Result<std::vector<JinjaPiece>> read_jinja(std::string_view source, const std::string& name);

// Tokens in one spelling: x['key'] becomes x.key, adjacent 'a' + 'b' become 'ab'.
std::string write_jinja(std::span<const JinjaToken> tokens);

}  // namespace syrinx::llama
