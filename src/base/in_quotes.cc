#include "base/in_quotes.h"

#include <fmt/format.h>

#include <algorithm>

namespace syrinx {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }
// U+0080 to U+009F, which terminals obey, too: U+009B begins an order as an escape and [ do.
bool is_long_control(char first, char second) {
  return first == '\xC2' && (static_cast<unsigned char>(second) & 0xE0) == 0x80;
}

}  // namespace

std::string shortened(std::string_view text, size_t max_bytes) {
  size_t end = std::min(text.size(), max_bytes);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  std::string shown;
  for (size_t i = 0; i < end; ++i) {
    const bool is_long = i + 1 < end && is_long_control(text[i], text[i + 1]);
    shown += is_long || is_control(text[i]) ? '?' : text[i];
    if (is_long) ++i;
  }
  return end == text.size() ? shown : shown + "...";
}

std::string in_quotes(std::string_view text, size_t max_bytes) {
  const std::string shown = shortened(text, max_bytes);
  return text.size() <= max_bytes ? fmt::format("'{}'", shown) : fmt::format("'{}' ({} bytes)", shown, text.size());
}

}  // namespace syrinx
