// A list of numbers as an option of the command line.
#pragma once

#include <charconv>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx::bench {

// "1,2,4" -> {1, 2, 4}; `option` stands in messages.  kInvalidArgument.
inline Result<std::vector<size_t>> number_list(const char* option, const std::string& text) {
  std::vector<size_t> values;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    size_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next < end && (*next != ',' || next + 1 == end)))
      return fail(Code::kInvalidArgument, "{} '{}' is not a list of numbers; give, say, 1,2,4", option, text);
    values.push_back(value);
    at = next < end ? next + 1 : end;
  }
  return values;
}

}  // namespace syrinx::bench
