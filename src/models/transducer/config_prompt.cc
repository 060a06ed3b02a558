#include "models/transducer/config_prompt.h"

#include <charconv>

#include "base/in_quotes.h"
#include "models/transducer/config_limits.h"

namespace syrinx::transducer {
namespace {

bool row_number(const YamlNode& node, size_t count, size_t& number) {
  const char* const end = node.text.data() + node.text.size();
  const auto [rest, error] = std::from_chars(node.text.data(), end, number);
  return node.kind == YamlNode::Kind::kScalar && error == std::errc() && rest == end && number < count;
}

}  // namespace

void read_languages(Section& section, PromptConfig& prompt) {
  const YamlMember* const stored = section.member("prompt_dictionary");
  section.require(stored != nullptr && !stored->value.members.empty() && stored->value.members.size() <= kMaxPrompts,
                  Code::kDataLoss, "prompt_dictionary", fmt::format("does not name 1 to {} languages", kMaxPrompts));
  if (stored == nullptr || stored->value.members.size() > kMaxPrompts) return;
  for (const YamlMember& member : stored->value.members) {
    size_t row = 0;
    const bool fits = row_number(member.value, prompt.count, row);
    section.require(fits, Code::kDataLoss, "prompt_dictionary",
                    fmt::format("gives {} no number below {}", in_quotes(member.key), prompt.count));
    if (fits) prompt.languages.push_back({.name = member.key, .index = row});
  }
}

}  // namespace syrinx::transducer
