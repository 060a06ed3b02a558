#include "store/http_headers.h"

#include <algorithm>
#include <charconv>

namespace syrinx {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::optional<std::string_view> header_value(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':') return std::nullopt;
  if (!std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) { return a == lower(b); }))
    return std::nullopt;
  std::string_view value = line.substr(name.size() + 1);
  const size_t first = std::min(value.find_first_not_of(" \t\r\n"), value.size());
  value.remove_prefix(first);
  return value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
}

bool is_strong_tag(std::string_view tag) {
  return tag.size() >= 2 && tag.size() <= 256 && tag.front() == '"' && tag.back() == '"';
}

std::optional<uint64_t> header_number(std::string_view value) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) return std::nullopt;
  return number;
}

std::optional<ContentRange> parse_content_range(std::string_view value) {
  if (!value.starts_with("bytes ")) return std::nullopt;
  value.remove_prefix(6);
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto total = header_number(value.substr(slash + 1));
  const std::string_view range = value.substr(0, slash);
  const auto first = range == "*" ? std::optional<uint64_t>(0) : header_number(range.substr(0, range.find('-')));
  if (!total || !first) return std::nullopt;
  return ContentRange{*first, *total};
}

}  // namespace syrinx
