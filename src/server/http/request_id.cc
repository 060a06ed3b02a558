#include "server/http/request_id.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/check.h"
#include "text/unicode.h"

namespace syrinx::server {

std::string new_request_id() {
  std::array<uint64_t, 2> number{};
  // So few bytes always come at once, without a signal in between.
  SYRINX_CHECK(::getrandom(number.data(), sizeof(number), 0) == static_cast<ssize_t>(sizeof(number)));
  return fmt::format("{:016x}{:016x}", number[0], number[1]);
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    const auto letter = static_cast<unsigned char>(c);
    return text::is_ascii_letter(letter) || text::is_ascii_digit(letter) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace syrinx::server
