// Character references of HTML: names (HTML 4 of the W3C, chapter 24: those of running text) and numbers.
#include "text/speech/entities.h"

#include <algorithm>
#include <iterator>

#include "text/unicode.h"

namespace syrinx::text {
namespace {

constexpr size_t kMostBytes = 10;  // between & and ;

struct Named {
  std::string_view name;
  char32_t character;
};

// Sorted by name.
constexpr Named kNamed[] = {
    {"AElig", 0xC6},  {"Aacute", 0xC1},  {"Acirc", 0xC2},   {"Agrave", 0xC0},   {"Aring", 0xC5},    {"Atilde", 0xC3},
    {"Auml", 0xC4},   {"Ccedil", 0xC7},  {"ETH", 0xD0},     {"Eacute", 0xC9},   {"Ecirc", 0xCA},    {"Egrave", 0xC8},
    {"Euml", 0xCB},   {"Iacute", 0xCD},  {"Icirc", 0xCE},   {"Igrave", 0xCC},   {"Iuml", 0xCF},     {"Ntilde", 0xD1},
    {"OElig", 0x152}, {"Oacute", 0xD3},  {"Ocirc", 0xD4},   {"Ograve", 0xD2},   {"Oslash", 0xD8},   {"Otilde", 0xD5},
    {"Ouml", 0xD6},   {"Scaron", 0x160}, {"THORN", 0xDE},   {"Uacute", 0xDA},   {"Ucirc", 0xDB},    {"Ugrave", 0xD9},
    {"Uuml", 0xDC},   {"Yacute", 0xDD},  {"Yuml", 0x178},   {"aacute", 0xE1},   {"acirc", 0xE2},    {"aelig", 0xE6},
    {"agrave", 0xE0}, {"amp", 0x26},     {"apos", 0x27},    {"aring", 0xE5},    {"asymp", 0x2248},  {"atilde", 0xE3},
    {"auml", 0xE4},   {"bdquo", 0x201E}, {"bull", 0x2022},  {"ccedil", 0xE7},   {"cent", 0xA2},     {"copy", 0xA9},
    {"deg", 0xB0},    {"divide", 0xF7},  {"eacute", 0xE9},  {"ecirc", 0xEA},    {"egrave", 0xE8},   {"emsp", 0x2003},
    {"ensp", 0x2002}, {"eth", 0xF0},     {"euml", 0xEB},    {"euro", 0x20AC},   {"frac12", 0xBD},   {"frac14", 0xBC},
    {"frac34", 0xBE}, {"ge", 0x2265},    {"gt", 0x3E},      {"hellip", 0x2026}, {"iacute", 0xED},   {"icirc", 0xEE},
    {"iexcl", 0xA1},  {"igrave", 0xEC},  {"infin", 0x221E}, {"iquest", 0xBF},   {"iuml", 0xEF},     {"laquo", 0xAB},
    {"larr", 0x2190}, {"ldquo", 0x201C}, {"le", 0x2264},    {"lsquo", 0x2018},  {"lt", 0x3C},       {"mdash", 0x2014},
    {"micro", 0xB5},  {"middot", 0xB7},  {"minus", 0x2212}, {"nbsp", 0xA0},     {"ndash", 0x2013},  {"ne", 0x2260},
    {"ntilde", 0xF1}, {"oacute", 0xF3},  {"ocirc", 0xF4},   {"oelig", 0x153},   {"ograve", 0xF2},   {"ordm", 0xBA},
    {"oslash", 0xF8}, {"otilde", 0xF5},  {"ouml", 0xF6},    {"para", 0xB6},     {"pi", 0x3C0},      {"plusmn", 0xB1},
    {"pound", 0xA3},  {"quot", 0x22},    {"radic", 0x221A}, {"raquo", 0xBB},    {"rarr", 0x2192},   {"rdquo", 0x201D},
    {"reg", 0xAE},    {"rsquo", 0x2019}, {"sbquo", 0x201A}, {"scaron", 0x161},  {"sect", 0xA7},     {"shy", 0xAD},
    {"sup1", 0xB9},   {"sup2", 0xB2},    {"sup3", 0xB3},    {"szlig", 0xDF},    {"thinsp", 0x2009}, {"thorn", 0xFE},
    {"times", 0xD7},  {"trade", 0x2122}, {"uacute", 0xFA},  {"ucirc", 0xFB},    {"ugrave", 0xF9},   {"uuml", 0xFC},
    {"yacute", 0xFD}, {"yen", 0xA5},     {"yuml", 0xFF},    {"zwj", 0x200D},    {"zwnj", 0x200C},
};
static_assert(std::is_sorted(std::begin(kNamed), std::end(kNamed),
                             [](const Named& a, const Named& b) { return a.name < b.name; }));

int digit_of(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = ascii_lower(c);
  return base == 16 && lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

char32_t numbered(std::string_view digits) {
  const int base = !digits.empty() && ascii_lower(digits[0]) == 'x' ? 16 : 10;
  if (base == 16) digits.remove_prefix(1);
  char32_t value = 0;
  if (digits.empty() || digits.size() > 7) return 0;
  for (const char c : digits) {
    const int digit = digit_of(c, base);
    if (digit < 0) return 0;
    value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit);
  }
  const bool is_character = value >= 0x20 && value <= 0x10FFFF && !(value >= 0xD800 && value <= 0xDFFF);
  return is_character ? value : 0;
}

}  // namespace

Entity parse_entity(std::string_view text) {
  if (text.empty() || text[0] != '&') return {};
  const size_t end = text.substr(0, kMostBytes + 2).find(';');
  if (end == std::string_view::npos || end < 2) return {};
  const std::string_view name = text.substr(1, end - 1);
  if (name[0] == '#') {
    const char32_t value = numbered(name.substr(1));
    return value == 0 ? Entity{} : Entity{value, end + 1};
  }
  const auto* found = std::lower_bound(std::begin(kNamed), std::end(kNamed), name,
                                       [](const Named& a, std::string_view b) { return a.name < b; });
  return found != std::end(kNamed) && found->name == name ? Entity{found->character, end + 1} : Entity{};
}

}  // namespace syrinx::text
