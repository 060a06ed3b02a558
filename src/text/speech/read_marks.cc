// Punctuation and signs.
#include <array>

#include "text/speech/context.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

struct Sign {
  char32_t sign;
  std::string_view words;
};

constexpr Sign kSigns[] = {
    {'%', "percent"},   {'&', "and"},         {'+', "plus"},           {'@', "at"},     {'=', "equals"},
    {U'×', "times"},    {U'÷', "divided by"}, {U'±', "plus or minus"}, {U'≈', "about"}, {U'≤', "at most"},
    {U'≥', "at least"}, {U'≠', "is not"},     {U'°', "degrees"},       {U'→', "to"},    {'$', "dollars"},
    {U'£', "pounds"},   {U'€', "euros"},      {U'¥', "yen"},           {U'¢', "cents"}, {U'²', "squared"},
    {U'³', "cubed"},
};

// "Ctrl+S", "Shift+F5", "Alt+Tab"; not "Windows+Mac".
constexpr std::string_view kHeldKeys = " ctrl control alt shift cmd command option win windows super meta fn ";
constexpr std::string_view kOtherKeys =
    " tab enter return space esc escape del delete backspace insert home end up down left right pageup pagedown plus "
    "minus ";

constexpr std::array<std::string_view, 24> kGreek = {
    "alpha", "beta", "gamma",   "delta", "epsilon", "zeta",  "eta", "theta",   "iota", "kappa", "lambda", "mu",
    "nu",    "xi",   "omicron", "pi",    "rho",     "sigma", "tau", "upsilon", "phi",  "chi",   "psi",    "omega"};

std::string_view greek_name(char32_t c) {
  if (c >= 0x391 && c <= 0x3A9) c += 0x20;
  if (c < 0x3B1 || c > 0x3C9) return {};
  size_t index = c - 0x3B1;
  if (index >= 18) --index;  // two forms of sigma
  return kGreek[index];
}

// A dash says something behind a word, a closing quotation or a bracket; behind another pause it does not.
bool takes_dash(const Token& token) {
  return token.kind != TokenKind::kPunctuation || token.text == "”" || token.text == ")";
}

// A straight quote opens where white space or an opening mark stands before it.
char32_t direction(const Input& in, size_t i) {
  const bool opens = i == 0 || in.space(i - 1) || in.at(i - 1) == '(' || in.at(i - 1) == '[' || in.at(i - 1) == U'—';
  return opens ? U'“' : U'”';
}

// The end of a plus between a key that is held and another, with the spaces around it; 0 elsewhere.
size_t key_joint_end(const Input& in, size_t i) {
  const bool is_spaced = i > 1 && in.at(i - 1) == ' ' && in.at(i + 1) == ' ';
  const size_t before = is_spaced ? i - 1 : i, next = is_spaced ? i + 2 : i + 1;
  if (before == 0 || !in.letter(before - 1) || !in.alnum(next) || !word_before(in, i).is(kHeldKeys)) return 0;
  const size_t letters = in.letters_end(next), end = in.digits_end(letters);
  const bool is_letter_or_digit = end == next + 1, is_function_key = letters == next + 1 && end <= next + 3;
  const bool is_named = word_after(in, next).is(kOtherKeys) || word_after(in, next).is(kHeldKeys);
  return in.ends_word(end) && (is_letter_or_digit || is_function_key || is_named) ? next : 0;
}

// "§ 1983", "§§ 5-7", "¶ 3": a sign that no number follows says nothing.
size_t read_section(const Input& in, size_t i, Output& out) {
  const char32_t sign = in.at(i);
  const bool several = in.at(i + 1) == sign;
  const size_t end = several ? i + 2 : i + 1;
  if (!in.digit(in.at(end) == ' ' ? end + 1 : end)) return 0;
  out.numbers(sign == U'§' ? (several ? "sections" : "section") : (several ? "paragraphs" : "paragraph"), i, end);
  return end;
}

size_t read_dash(const Input& in, size_t i, Output& out) {
  size_t end = i;
  while (in.at(end) == '-' || in.at(end) == U'–' || in.at(end) == U'—') ++end;
  const bool lone_hyphen = end == i + 1 && in.at(i) == '-';
  const bool spaced = (i == 0 || in.space(i - 1)) && in.space(end);
  if (lone_hyphen && !spaced) return end;  // a hyphen at the edge of a word is silent
  if (!out.tokens().empty() && takes_dash(out.tokens().back())) out.punctuation(U'—', i, end);
  return end;
}

}  // namespace

size_t read_mark(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  const char32_t c = in.at(i);
  switch (c) {
    case ';':
    case ':':
    case ',':
    case '!':
    case '?':
    case U'…':
    case U'“':
    case U'”': out.punctuation(c, i, i + 1); return i + 1;
    case '.': {
      size_t end = i;
      while (in.at(end) == '.' || (in.at(end) == ' ' && in.at(end + 1) == '.')) ++end;
      out.punctuation(end - i > 1 ? U'…' : U'.', i, end);
      return end;
    }
    case '(':
    case '[':
    case '{': out.punctuation('(', i, i + 1); return i + 1;
    case ')':
    case ']':
    case '}': out.punctuation(')', i, i + 1); return i + 1;
    case U'§':
    case U'¶': return read_section(in, i, out);
    case '"': out.punctuation(direction(in, i), i, i + 1); return i + 1;
    case '-':
    case U'–':
    case U'—': return read_dash(in, i, out);
    case '\'':
    case '*':
    case '_':
    case '`':
    case '^':
    case '|':
    case '\\':
    case '~':
    case '/':
    case '#':
    case '<':
    case '>':
      out.space();  // says nothing
      return i + 1;
    default: break;
  }
  if (const size_t next = c == '+' ? key_joint_end(in, i) : 0; next > 0) {
    out.space();
    return next;
  }
  for (const Sign& sign : kSigns) {
    if (sign.sign == c) {
      out.numbers(sign.words, i, i + 1);
      return i + 1;
    }
  }
  if (const std::string_view name = greek_name(c); !name.empty()) {
    out.word(name, i, i + 1);
    return i + 1;
  }
  return 0;
}

}  // namespace syrinx::text
