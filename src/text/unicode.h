// UTF-8, normal forms and character classes behind one wrapper, so that utf8proc is included in one file only.
// All functions are pure and thread-safe; those that take decoded text expect valid UTF-8 (check with find_invalid).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace syrinx::text {

// Half-open range of bytes.
struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Offset of the first byte that is not part of a well-formed UTF-8 character (surrogates and overlong forms are not).
std::optional<size_t> find_invalid(std::string_view bytes);
// Bytes at the end of `bytes` that begin a character without finishing it (0 to 3): a stream keeps them for later.
size_t unfinished_tail(std::string_view bytes);
// The character at `offset`, which moves behind it.  A malformed byte gives U+FFFD and moves by one.
char32_t decode(std::string_view bytes, size_t& offset);
void append_utf8(std::string& out, char32_t c);
size_t count_code_points(std::string_view bytes);

enum class Class : uint8_t {
  kUpper,
  kLower,
  kOtherLetter,
  kMark,
  kDigit,
  kOtherNumber,
  kPunctuation,
  kSymbol,
  kSpace,
  kControl
};
Class classify(char32_t c);
size_t width(char32_t c);  // in columns of a fixed-width font: 0, 1 or 2
bool is_letter(char32_t c);
bool is_space(char32_t c);

// Whether a grapheme ends between two characters that follow each other (UAX #29, extended).  `state` is 0 at the
// beginning of a text and kept from call to call.
bool ends_grapheme(char32_t before, char32_t after, int& state);
// Compatibility composition of a few characters (a base with its marks); unchanged where there is nothing to do.
std::u32string nfkc(std::u32string_view characters);
// The normal form C of a text, in O(n log n) time; a malformed byte is kept, and nothing composes across it.
std::string nfc(std::string_view bytes);
// A Latin letter without its marks ("é" gives "e", "ß" "ss", "Æ" "AE"); empty for a letter of another script.
std::string_view ascii_letters(char32_t c);
// 0 to 9 for a decimal digit of any script, else -1.
int digit_value(char32_t c);

inline bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }
inline bool is_ascii_upper(char32_t c) { return c >= 'A' && c <= 'Z'; }
inline bool is_ascii_lower(char32_t c) { return c >= 'a' && c <= 'z'; }
inline bool is_ascii_letter(char32_t c) { return is_ascii_upper(c) || is_ascii_lower(c); }
inline char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
inline char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
std::string ascii_lower(std::string_view s);
std::string ascii_upper(std::string_view s);

}  // namespace syrinx::text
