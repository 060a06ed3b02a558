// Lines of an HTTP answer's head, as libcurl hands them over.  Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace syrinx {

// The value of "Name: value", without white space at its ends, if the line is that header; `name` is in lower case.
std::optional<std::string_view> header_value(std::string_view line, std::string_view name);

// An entity tag that If-Range may carry: quoted, not weak, of at most 256 bytes.
bool is_strong_tag(std::string_view tag);

// A whole number and nothing else.
std::optional<uint64_t> header_number(std::string_view value);

// The value of a Content-Range: "bytes 5-99/100", or "bytes */100" of an answer 416 (then `first` is 0).
struct ContentRange {
  uint64_t first = 0;
  uint64_t total = 0;
};
std::optional<ContentRange> parse_content_range(std::string_view value);

}  // namespace syrinx
