#include "base/in_quotes.h"

#include <fmt/format.h>

#include <algorithm>

namespace syrinx {

std::string shortened(std::string_view text, size_t max_bytes) {
  size_t end = std::min(text.size(), max_bytes);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  std::string shown(text.substr(0, end));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return end == text.size() ? shown : shown + "...";
}

std::string in_quotes(std::string_view text, size_t max_bytes) {
  const std::string shown = shortened(text, max_bytes);
  return text.size() <= max_bytes ? fmt::format("'{}'", shown) : fmt::format("'{}' ({} bytes)", shown, text.size());
}

}  // namespace syrinx
