#include "text/speech/clean.h"

#include <string>

#include "text/speech/currencies.h"
#include "text/speech/entities.h"
#include "text/unicode.h"

namespace syrinx::text {
namespace {

constexpr std::u32string_view kKept = U"–—…°²³¢×÷±≈≤≥≠→“”√∛∜Ω‰§¶";

bool is_greek(char32_t c) { return (c >= 0x391 && c <= 0x3A9) || (c >= 0x3B1 && c <= 0x3C9); }

// Joiners, selectors and marks of direction say nothing and are not missed.
bool is_ignorable(char32_t c) {
  return c == 0xAD || (c >= 0x200C && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x2064) ||
         (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF || (c >= 0xE0000 && c <= 0xE01EF) || c == U'™' || c == U'®' ||
         c == U'©';
}

// The plain form of a superscript, else 0; "²" and "³" are kept as they are.
char32_t superscript(char32_t c) {
  if (c == U'⁰' || (c >= U'⁴' && c <= U'⁹')) return '0' + (c - U'⁰');
  if (c == U'¹') return '1';
  return c == U'⁻' ? '-' : c == U'ⁿ' ? 'n' : 0;
}

bool is_kept(char32_t c) { return kKept.find(c) != std::u32string_view::npos || is_currency_sign(c); }

// One sign for each family of quotes and dashes; 0 where the character is not one of them.
char32_t plain_mark(char32_t c) {
  switch (c) {
    case U'‘':
    case U'’':
    case U'‛':
    case U'ʼ':
    case U'′':
    case U'`':
    case U'´':
    case U'‹':
    case U'›': return '\'';
    case U'„':
    case U'‟':
    case U'«': return U'“';
    case U'»': return U'”';
    case U'″': return '"';
    case U'‐':
    case U'‑':
    case U'−':
    case U'﹣':
    case U'-': return '-';
    case U'‒': return U'–';
    case U'―': return U'—';
    case U'º': return U'°';
    case 0x200B: return ' ';
    case U'⁄':
    case U'∕': return '/';
    case U'·':
    case U'•':
    case U'‣':
    case U'▪':
    case U'●': return ' ';
    default: return 0;
  }
}

class Cleaner {
 public:
  explicit Cleaner(size_t size) { out_.chars.reserve(size); }

  void put(char32_t c, uint32_t begin, uint32_t end) { out_.chars.push_back({c, begin, end}); }

  // A character after compatibility forms were resolved.
  void put_resolved(char32_t c, uint32_t begin, uint32_t end) {
    if (c < 0x80 || is_kept(c) || is_greek(c)) {
      put(c < 0x20 || c == 0x7F ? (c == '\n' ? U'\n' : U' ') : c, begin, end);
    } else if (const char32_t mark = plain_mark(c)) {
      put(mark, begin, end);
    } else if (const int digit = digit_value(c); digit >= 0) {
      put(static_cast<char32_t>('0' + digit), begin, end);
    } else if (const std::string_view letters = ascii_letters(c); !letters.empty()) {
      for (const char letter : letters) put(static_cast<unsigned char>(letter), begin, end);
    } else if (is_space(c)) {
      put(' ', begin, end);
    } else if (const Class kind = classify(c); kind != Class::kMark && !is_ignorable(c)) {
      out_.dropped.push_back(begin);
      put(' ', begin, end);
    }
  }

  // Powers: "10⁻⁶" becomes "10^-6".  A run of superscripts that stands behind no number, letter or bracket is a note.
  bool put_superscript(char32_t c, uint32_t begin, uint32_t end) {
    char32_t plain = superscript(c);
    if (plain == 0 && in_power_ && (c == U'²' || c == U'³')) plain = c == U'²' ? '2' : '3';
    if (plain == 0) return in_power_ = false;
    const char32_t before = out_.chars.empty() ? 0 : out_.chars.back().c;
    if (before == U'²' || before == U'³') {  // "10²⁴"
      Char& last = out_.chars.back();
      const Char digit{before == U'²' ? U'2' : U'3', last.begin, last.end};
      last.c = '^';
      out_.chars.push_back(digit);
      in_power_ = true;
    }
    if (!in_power_ && (is_ascii_digit(before) || is_ascii_letter(before) || before == ')')) put('^', begin, end);
    in_power_ = true;
    put(plain, begin, end);
    return true;
  }

  void end_power() { in_power_ = false; }

  void put_fraction(std::u32string_view form, uint32_t begin, uint32_t end) {
    if (!out_.chars.empty() && is_ascii_digit(out_.chars.back().c)) put(' ', begin, end);
    for (const char32_t c : form) put_resolved(c, begin, end);
  }

  Cleaned take() { return std::move(out_); }

 private:
  Cleaned out_;
  bool in_power_ = false;
};

void put_cluster(Cleaner& cleaner, const std::u32string& cluster, uint32_t from, uint32_t to) {
  const char32_t c = cluster[0];
  if (cleaner.put_superscript(c, from, to)) return;
  if (is_kept(c) || plain_mark(c) != 0 || is_ignorable(c)) {
    if (!is_ignorable(c)) cleaner.put_resolved(c, from, to);
    return;
  }
  const std::u32string resolved = nfkc(cluster);
  if (resolved.find(U'⁄') != std::u32string::npos) {
    cleaner.put_fraction(resolved, from, to);
  } else {
    for (const char32_t r : resolved) cleaner.put_resolved(r, from, to);
  }
}

}  // namespace

Result<Cleaned> clean(std::string_view text) {
  Cleaner cleaner(text.size());
  std::u32string cluster;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = decode(text, i);
    if (c == 0) return fail(Code::kInvalidArgument, "byte {} of the text is zero: this is not a text", begin);
    if (c == 0xFFFD && i - begin == 1) {
      return fail(Code::kInvalidArgument, "byte {} of the text is not UTF-8; convert the text or leave the byte out",
                  begin);
    }
    if (c == '&') {
      if (const Entity entity = parse_entity(text.substr(begin)); entity.character != 0) {
        i = begin + entity.bytes;
        cluster.assign(1, entity.character);
        put_cluster(cleaner, cluster, static_cast<uint32_t>(begin), static_cast<uint32_t>(i));
        continue;
      }
    }
    if (c < 0x80 && (i == text.size() || static_cast<unsigned char>(text[i]) < 0x80)) {
      cleaner.end_power();
      cleaner.put_resolved(plain_mark(c) != 0 ? plain_mark(c) : c, static_cast<uint32_t>(begin),
                           static_cast<uint32_t>(i));
      continue;
    }
    cluster.assign(1, c);
    while (i < text.size() && cluster.size() < 16) {
      size_t next = i;
      const char32_t mark = decode(text, next);
      if (mark < 0x300 || classify(mark) != Class::kMark) break;
      cluster += mark;
      i = next;
    }
    put_cluster(cleaner, cluster, static_cast<uint32_t>(begin), static_cast<uint32_t>(i));
  }
  return cleaner.take();
}

}  // namespace syrinx::text
