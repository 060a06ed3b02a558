// Web addresses, e-mail addresses and telephone numbers.
#include <algorithm>
#include <array>

#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr std::array<std::string_view, 26> kTopLevel = {"com", "org", "net", "edu", "gov",  "mil", "int", "io", "ai",
                                                        "dev", "app", "co",  "uk",  "us",   "ca",  "de",  "fr", "eu",
                                                        "jp",  "cn",  "au",  "in",  "info", "biz", "tv",  "me"};

bool address_sign(char32_t c) {
  return c == '.' || c == '-' || c == '_' || c == '/' || c == '@' || c == '?' || c == '=' || c == '&' || c == '%' ||
         c == '+' || c == '~' || c == '#' || c == ':';
}

// End of the run of address characters, without punctuation at its end.
size_t run_end(const Input& in, size_t i) {
  size_t end = i;
  while (in.alnum(end) || address_sign(in.at(end))) ++end;
  while (end > i && !in.alnum(end - 1) && in.at(end - 1) != '/') --end;
  return end;
}

bool top_level(std::string_view label) {
  for (const std::string_view known : kTopLevel) {
    if (known == label) return true;
  }
  return false;
}

// Is [begin, end) labels with points between them, the last a known top level?
bool is_host(const Input& in, size_t begin, size_t end) {
  size_t last = begin;
  bool point = false;
  for (size_t i = begin; i < end; ++i) {
    if (in.at(i) == '.') {
      if (i == last) return false;
      point = true;
      last = i + 1;
    } else if (!in.alnum(i) && in.at(i) != '-') {
      return false;
    }
  }
  return point && top_level(ascii_lower(in.ascii(last, end)));
}

size_t find(const Input& in, size_t begin, size_t end, std::u32string_view signs) {
  while (begin < end && signs.find(in.at(begin)) == std::u32string_view::npos) ++begin;
  return begin;
}

std::string_view sign_word(char32_t c) {
  switch (c) {
    case '.': return "dot";
    case '-': return "dash";
    case '_': return "underscore";
    case '/': return "slash";
    case '@': return "at";
    case '?': return "question mark";
    case '=': return "equals";
    case '&': return "and";
    case '%': return "percent";
    case '+': return "plus";
    case '~': return "tilde";
    case '#': return "hash";
    default: return "colon";
  }
}

bool is_vowel(char c) { return std::string_view("aeiouy").find(c) != std::string_view::npos; }

// Is a short name that is no word spelled, as "itv", "ibm" and "imdb" are?
bool is_spelled_name(std::string_view lower, const NormalizeOptions& options) {
  if (lower.size() > 4 || !options.is_word || options.is_word(lower)) return false;
  std::string name(lower);
  name[0] = ascii_upper(name[0]);
  if (options.is_word(name)) return false;
  size_t consonants = 0;
  for (const char c : lower) {
    consonants = is_vowel(c) ? 0 : consonants + 1;
    if (consonants == 3) return true;
  }
  return lower.size() <= 3 && is_vowel(lower[0]);
}

void say_address(const Input& in, size_t begin, size_t end, const NormalizeOptions& options, Output& out) {
  for (size_t i = begin; i < end;) {
    if (in.letter(i)) {
      const size_t letters = in.letters_end(i);
      const std::string word = in.ascii(i, letters);
      const std::string lower = ascii_lower(word);
      const bool after_point = i > begin && in.at(i - 1) == '.';
      const bool spelled =
          lower == "www" || lower.size() == 1 || std::none_of(lower.begin(), lower.end(), is_vowel) ||
          (!after_point && is_spelled_name(lower, options)) ||
          (after_point && lower.size() == 2 && lower != "me" && lower != "us" && lower != "in" && lower != "co");
      if (spelled) {
        out.letters(word, i, letters);
      } else {
        out.word(word, i, letters);
      }
      i = letters;
    } else if (in.digit(i)) {
      const size_t digits = in.digits_end(i);
      const std::string number = in.ascii(i, digits);
      out.numbers(number.size() <= 2 && number[0] != '0' ? cardinal(number) : one_by_one(number), i, digits);
      i = digits;
    } else {
      if (!(in.at(i) == '/' && i + 1 == end)) out.numbers(sign_word(in.at(i)), i, i + 1);
      ++i;
    }
  }
}

struct Phone {
  std::string words;
  size_t end = 0;
};

bool separator(const Input& in, size_t i) { return in.at(i) == '-' || in.at(i) == ' ' || in.at(i) == '.'; }

// Groups of digits of these lengths with a separator between them.
std::optional<Phone> groups(const Input& in, size_t i, std::initializer_list<size_t> lengths, std::string words) {
  bool first = true;
  char32_t sign = 0;
  for (const size_t length : lengths) {
    if (!first) {
      if (!separator(in, i) || (sign != 0 && in.at(i) != sign)) return std::nullopt;
      sign = in.at(i);
      ++i;
    }
    const size_t end = in.digits_end(i);
    if (end - i != length) return std::nullopt;
    if (!words.empty()) words += " , ";
    words += one_by_one(in.ascii(i, end));
    i = end;
    first = false;
  }
  if (!in.ends_word(i) || (in.at(i) == '-' && in.digit(i + 1)) || (in.at(i) == '.' && in.digit(i + 1)))
    return std::nullopt;
  return Phone{std::move(words), i};
}

}  // namespace

size_t read_address(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  // Only at the start of a run of such characters: looking again at each of its words would take quadratic time.
  if (!in.alnum(i) || !in.begins_word(i) || (i > 0 && address_sign(in.at(i - 1)))) return 0;
  const size_t end = run_end(in, i);
  size_t begin = i;
  bool sure = false;
  for (const std::string_view scheme : {"https://", "http://", "ftp://", "file://"}) {
    if (in.matches(i, scheme)) {
      begin = i + scheme.size();
      sure = true;
    }
  }
  if (in.matches(i, "mailto:")) begin = i + 7;
  sure = sure || in.matches(begin, "www.");
  if (begin >= end) return 0;
  const size_t at = find(in, begin, end, U"@");
  const bool mail = at > begin && at < end && is_host(in, at + 1, find(in, at + 1, end, U"/?:#"));
  if (!sure && !mail && !is_host(in, begin, find(in, begin, end, U"/?:#@"))) return 0;
  say_address(in, begin, end, options, out);
  return end;
}

size_t read_phone(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.begins_word(i)) return 0;
  size_t at = i;
  std::string words;
  if (in.at(at) == '+' && in.digit(at + 1)) {
    const size_t end = in.digits_end(at + 1);
    if (end - at > 4 || !separator(in, end)) return 0;
    words = "plus " + one_by_one(in.ascii(at + 1, end));
    at = end + 1;
  } else if (in.at(at) == '1' && separator(in, at + 1) && in.at(at + 1) != ' ') {
    words = "one";
    at += 2;
  }
  std::optional<Phone> phone;
  if (in.at(at) == '(' && in.digits_end(at + 1) == at + 4 && in.at(at + 4) == ')') {
    const std::string area = one_by_one(in.ascii(at + 1, at + 4));
    phone = groups(in, in.at(at + 5) == ' ' ? at + 6 : at + 5, {3, 4}, words.empty() ? area : words + " , " + area);
  } else {
    phone = groups(in, at, {3, 3, 4}, words);
    if (!phone && !words.empty()) phone = groups(in, at, {2, 4, 4}, words);
    if (!phone && !words.empty()) phone = groups(in, at, {4, 6}, words);
    if (!phone && words.empty() && in.at(in.digits_end(at)) == '-') phone = groups(in, at, {3, 4}, words);
  }
  if (!phone) return 0;
  out.numbers(phone->words, i, phone->end);
  return phone->end;
}

}  // namespace syrinx::text
