// The escape of Kokoro's users: [word](/phonemes/) or [word](stress), stress one of -2, -1, -0.5, 0, 0.5, 1, 2.
#pragma once

#include <optional>
#include <string_view>

namespace syrinx::text {

inline constexpr size_t kMaxEscapeBytes = 400;

struct Escape {
  std::string_view word;      // what is written
  std::string_view phonemes;  // between the slashes; empty for a stress
  std::optional<float> stress;
  size_t length = 0;  // bytes from [ to )
};

// The escape at the start of `text`, if there is a whole one within kMaxEscapeBytes.
std::optional<Escape> parse_escape(std::string_view text);
// Its length in bytes, or 0.
size_t escape_length(std::string_view text);

}  // namespace syrinx::text
