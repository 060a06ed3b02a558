#include "text/escape.h"

namespace syrinx::text {
namespace {

std::optional<float> parse_stress(std::string_view s) {
  if (!s.empty() && s[0] == '+') s.remove_prefix(1);
  const bool negative = !s.empty() && s[0] == '-';
  if (negative) s.remove_prefix(1);
  float value = 0;
  if (s == "0.5") {
    value = 0.5f;
  } else if (s.size() == 1 && s[0] >= '0' && s[0] <= '2') {
    value = static_cast<float>(s[0] - '0');
  } else {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace

std::optional<Escape> parse_escape(std::string_view text) {
  text = text.substr(0, kMaxEscapeBytes);
  if (text.empty() || text[0] != '[') return std::nullopt;
  const size_t close = text.find_first_of("[]\n", 1);
  if (close == std::string_view::npos || text[close] != ']' || close < 2) return std::nullopt;
  if (close + 1 >= text.size() || text[close + 1] != '(') return std::nullopt;
  const size_t end = text.find_first_of(")\n", close + 2);
  if (end == std::string_view::npos || text[end] != ')') return std::nullopt;
  Escape escape;
  escape.word = text.substr(1, close - 1);
  escape.length = end + 1;
  const std::string_view content = text.substr(close + 2, end - close - 2);
  if (content.size() >= 3 && content.front() == '/' && content.back() == '/') {
    escape.phonemes = content.substr(1, content.size() - 2);
    return escape;
  }
  escape.stress = parse_stress(content);
  if (!escape.stress) return std::nullopt;
  return escape;
}

size_t escape_length(std::string_view text) {
  const auto escape = parse_escape(text);
  return escape ? escape->length : 0;
}

}  // namespace syrinx::text
