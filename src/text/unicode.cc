#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

namespace syrinx::text {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Length of the well-formed character at the start of `s`, or 0.  `need` receives the length its first byte announces
// (0 when no character starts so), which tells an unfinished character from a wrong one.
size_t well_formed(std::string_view s, size_t& need) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  need = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  for (size_t i = 1; i < need; ++i) {
    if (i >= s.size()) return 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (i == 1) {  // overlong forms, surrogates, above U+10FFFF
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    }
    if (byte(i) < low || byte(i) > high) {
      need = 0;
      return 0;
    }
  }
  return need;
}

// Composes decomposed text, appends it to `out` and empties it.  utf8proc_map() would put marks in order by exchanging
// neighbours, which takes quadratic time.
void append_composed(std::vector<utf8proc_int32_t>& text, std::string& out) {
  const auto ccc = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find_if(begin, text.end(), [&](utf8proc_int32_t c) { return ccc(c) == 0; });
    std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) { return ccc(a) < ccc(b); });
    begin = end == text.end() ? end : end + 1;
  }
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t size =
      utf8proc_normalize_utf32(text.data(), static_cast<utf8proc_ssize_t>(text.size()), options);
  for (utf8proc_ssize_t i = 0; i < size; ++i) append_utf8(out, static_cast<char32_t>(text[static_cast<size_t>(i)]));
  text.clear();
}

}  // namespace

std::optional<size_t> find_invalid(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    size_t need = 0;
    const size_t length = well_formed(bytes.substr(i), need);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

size_t unfinished_tail(std::string_view bytes) {
  for (size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const auto c = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if (c >= 0x80 && c < 0xC0) continue;
    size_t need = 0;
    return well_formed(bytes.substr(bytes.size() - back), need) == 0 && need > back ? back : 0;
  }
  return 0;
}

char32_t decode(std::string_view bytes, size_t& offset) {
  size_t need = 0;
  const size_t length = well_formed(bytes.substr(offset), need);
  if (length == 0) {
    ++offset;
    return kReplacement;
  }
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(bytes[offset + i])); };
  char32_t c = byte(0);
  if (length == 2) c = (c & 0x1F) << 6 | (byte(1) & 0x3F);
  if (length == 3) c = (c & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  if (length == 4) c = (c & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  offset += length;
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18 & 0x07));
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

size_t count_code_points(std::string_view bytes) {
  return static_cast<size_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Class classify(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return Class::kUpper;
    case UTF8PROC_CATEGORY_LL: return Class::kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return Class::kOtherLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return Class::kMark;
    case UTF8PROC_CATEGORY_ND: return Class::kDigit;
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return Class::kOtherNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return Class::kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return Class::kSymbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return Class::kSpace;
    default:
      return c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r' || c == 0x85 ? Class::kSpace
                                                                                        : Class::kControl;
  }
}

size_t width(char32_t c) { return static_cast<size_t>(utf8proc_charwidth(static_cast<utf8proc_int32_t>(c))); }

bool is_letter(char32_t c) {
  if (c < 0x80) return is_ascii_letter(c);
  const Class kind = classify(c);
  return kind == Class::kUpper || kind == Class::kLower || kind == Class::kOtherLetter;
}

bool is_space(char32_t c) { return c < 0x80 ? c == ' ' || (c >= '\t' && c <= '\r') : classify(c) == Class::kSpace; }

bool ends_grapheme(char32_t before, char32_t after, int& state) {
  utf8proc_int32_t kept = state;
  const bool ends = utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                                     static_cast<utf8proc_int32_t>(after), &kept);
  state = kept;
  return ends;
}

std::u32string nfkc(std::u32string_view characters) {
  std::string bytes;
  for (const char32_t c : characters) append_utf8(bytes, c);
  utf8proc_uint8_t* mapped = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                             static_cast<utf8proc_ssize_t>(bytes.size()), &mapped, options);
  if (size < 0) return std::u32string(characters);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  const std::string_view view(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::u32string out;
  for (size_t i = 0; i < view.size();) out += decode(view, i);
  return out;
}

std::string nfc(std::string_view bytes) {
  // Nothing below U+0300 combines with what stands before it or has another form: no byte from 0xCC on, no work.
  const auto is_low = [](char c) { return static_cast<unsigned char>(c) < 0xCC; };
  if (std::all_of(bytes.begin(), bytes.end(), is_low)) return std::string(bytes);
  std::string out;
  std::vector<utf8proc_int32_t> text;
  for (size_t i = 0; i < bytes.size();) {
    const size_t begin = i;
    const char32_t c = decode(bytes, i);
    // U+11A7 composes with nothing; utf8proc would drop it behind a Hangul syllable.
    if ((c == kReplacement && i - begin == 1) || c == 0x11A7) {
      append_composed(text, out);
      out += bytes.substr(begin, i - begin);
      continue;
    }
    std::array<utf8proc_int32_t, 8> parts{};
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                                                           UTF8PROC_DECOMPOSE, nullptr);
    text.insert(text.end(), parts.begin(), parts.begin() + std::clamp<utf8proc_ssize_t>(count, 0, parts.size()));
  }
  append_composed(text, out);
  return out;
}

std::string_view ascii_letters(char32_t c) {
  // Every Latin letter that decomposes is reduced to its base; these do not decompose.
  struct Special {
    char32_t letter;
    std::string_view ascii;
  };
  static constexpr Special kSpecial[] = {
      {0xC6, "AE"}, {0xD0, "D"},  {0xD8, "O"},   {0xDE, "Th"},  {0xDF, "ss"},   {0xE6, "ae"},
      {0xF0, "d"},  {0xF8, "o"},  {0xFE, "th"},  {0x110, "D"},  {0x111, "d"},   {0x131, "i"},
      {0x141, "L"}, {0x142, "l"}, {0x152, "OE"}, {0x153, "oe"}, {0x1E9E, "SS"},
  };
  static constexpr auto kAscii = [] {
    std::array<char, 128> all{};
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
    return all;
  }();
  if (c < 0x80) return is_ascii_letter(c) ? std::string_view(&kAscii[c], 1) : std::string_view();
  for (const Special& special : kSpecial) {
    if (special.letter == c) return special.ascii;
  }
  std::array<utf8proc_int32_t, 8> parts{};
  const utf8proc_ssize_t n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(), parts.size(),
                                                     UTF8PROC_DECOMPOSE, nullptr);
  if (n < 1 || parts[0] >= 0x80 || !is_ascii_letter(static_cast<char32_t>(parts[0]))) return {};
  return {&kAscii[static_cast<size_t>(parts[0])], 1};
}

int digit_value(char32_t c) {
  if (is_ascii_digit(c)) return static_cast<int>(c - '0');
  if (c < 0x80 || classify(c) != Class::kDigit) return -1;
  // Decimal digits stand in blocks of ten, zero first (Unicode standard, 4.6).
  char32_t zero = c;
  while (classify(zero - 1) == Class::kDigit) --zero;
  return static_cast<int>((c - zero) % 10);
}

std::string ascii_lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = ascii_lower(c);
  return out;
}

std::string ascii_upper(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = ascii_upper(c);
  return out;
}

}  // namespace syrinx::text
