// RFC 4648, with padding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syrinx::server {

inline constexpr char kBase64Digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    unsigned group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? std::to_integer<unsigned>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kBase64Digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// From 0 to 63; -1: it is no digit.
inline int base64_value(char c) {
  static constexpr std::array<int8_t, 256> kValues = [] {
    std::array<int8_t, 256> values{};
    for (int8_t& value : values) value = -1;
    for (int8_t i = 0; i < 64; ++i) values[static_cast<unsigned char>(kBase64Digits[i])] = i;
    return values;
  }();
  return kValues[static_cast<unsigned char>(c)];
}

// Nothing where it is not base64: another character, a length that is not a multiple of four, bits behind the last
// byte.
inline std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int value = k < digits ? base64_value(text[i + k]) : 0;
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    if ((group & ((uint32_t{1} << (8 * (4 - digits))) - 1)) != 0) return std::nullopt;
    for (size_t k = 0; k + 1 < digits; ++k) bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * k) & 0xFF));
  }
  return bytes;
}

}  // namespace syrinx::server
