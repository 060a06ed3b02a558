// Maths: operators between operands, comparisons, powers, roots, functions, scientific notation, factorials.
#include <array>

#include "text/speech/context.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr size_t kLookForEquation = 40;  // characters around a place

bool is_variable(const Input& in, size_t i) { return in.letter(i) && in.begins_word(i) && in.ends_word(i + 1); }

size_t previous(const Input& in, size_t i) {  // the place before i that is no space; in.size() if none
  while (i > 0) {
    --i;
    if (in.at(i) != ' ') return i;
  }
  return in.size();
}

size_t following(const Input& in, size_t i) {
  for (int k = 0; k < 2 && in.at(i) == ' '; ++k) ++i;
  return i;
}

// Does an operand end before i: a number, a variable, a bracket, a name of code?
bool operand_before(const Input& in, size_t i) {
  const size_t k = previous(in, i);
  if (k >= in.size()) return false;
  const char32_t c = in.at(k);
  if (in.digit(k) || c == ')' || c == ']' || c == U'²' || c == U'³') return true;
  // "x", and the x of "2x".
  return in.letter(k) && in.ends_word(k + 1) && (k == 0 || (!in.letter(k - 1) && in.at(k - 1) != '\'')) &&
         !(c == 'a' && in.space(k + 1) && k > 1 && in.lower(k - 2));
}

// "a", "A", "I": the article or the pronoun as well.
bool is_word_letter(const Input& in, size_t i) {
  return is_variable(in, i) && (in.at(i) == 'a' || in.at(i) == 'A' || in.at(i) == 'I');
}

bool operand_after(const Input& in, size_t i) {
  const size_t k = following(in, i);
  return in.digit(k) || is_variable(in, k) || in.at(k) == '(' || in.at(k) == U'√' ||
         ((in.at(k) == '-' || in.at(k) == '.') && in.digit(k + 1)) || (in.letter(k) && in.at(k + 1) == '(');
}

bool is_spaced(const Input& in, size_t i, size_t end) { return i > 0 && in.at(i - 1) == ' ' && in.at(end) == ' '; }

// Is there an equals sign near?
bool in_equation(const Input& in, size_t i) {
  for (size_t k = i - std::min(i, kLookForEquation); k < i + kLookForEquation && k < in.size(); ++k) {
    if (in.at(k) == '=') return true;
  }
  return false;
}

struct Comparison {
  std::u32string_view written;
  std::string_view between;  // behind an operand
  std::string_view alone;    // before a number: "<10 ms"; empty: none
};
constexpr std::array<Comparison, 13> kComparisons = {{
    {U"===", "equals", ""},
    {U"!==", "is not equal to", ""},
    {U"==", "equals", ""},
    {U"!=", "is not equal to", ""},
    {U"<=", "is at most", "at most"},
    {U">=", "is at least", "at least"},
    {U"≤", "is at most", "at most"},
    {U"≥", "is at least", "at least"},
    {U"≠", "is not equal to", "not equal to"},
    {U"≈", "is about", "about"},
    {U"&&", "and", ""},
    {U"||", "or", ""},
    {U":=", "is", ""},
}};

bool stands_at(const Input& in, size_t i, std::u32string_view sign) {
  for (size_t k = 0; k < sign.size(); ++k) {
    if (in.at(i + k) != sign[k]) return false;
  }
  return true;
}

// "the walk is > 2 miles", "it's < 5", "takes < 5 s": no "is" is wanted.
bool verb_before(const Input& in, size_t i) {
  const Near before = word_before(in, i);
  return before.is(
             " is are was were be been being am isn't aren't wasn't weren't have has had take takes took need needs "
             "require requires keep keeps stay stays in within ") ||
         before.word.ends_with("'s") || before.word.ends_with("'m") || before.word.ends_with("'re");
}

// Does the sign in [i, end) compare what stands before it?
bool is_compared(const Input& in, size_t i, size_t end) { return operand_before(in, i) || is_spaced(in, i, end); }

// The words of a comparison behind a verb: "is" == 3.
std::string_view behind_verb(std::string_view words) {
  if (words == "equals") return "equal to";
  return words.starts_with("is ") ? words.substr(3) : words;
}

// "=====" under a title.
size_t ruler_end(const Input& in, size_t i) {
  size_t end = i;
  while (in.at(end) == '=') ++end;
  return end - i > 3 ? end : 0;
}

size_t read_comparison(const Input& in, size_t i, Output& out) {
  if (const size_t end = ruler_end(in, i); end > 0) {
    out.drop();
    return end;
  }
  for (const Comparison& each : kComparisons) {
    if (!stands_at(in, i, each.written)) continue;
    const size_t end = i + each.written.size();
    const bool between = each.alone.empty() || is_compared(in, i, end);
    const std::string_view words = between ? each.between : each.alone;
    out.numbers(is_spaced(in, i, end) && verb_before(in, i) ? behind_verb(words) : words, i, end);
    return end;
  }
  const char32_t c = in.at(i);
  if ((c != '<' && c != '>') || in.at(i + 1) == c || !operand_after(in, i + 1)) return 0;
  const std::string_view words = c == '<' ? "less than" : "greater than";
  const bool is_said = verb_before(in, i), between = is_compared(in, i, i + 1);
  if (!between && !in.digit(i + 1) && in.at(i + 1) != '-' && in.at(i + 1) != '.') return 0;
  if (i > 0 && (in.at(i - 1) == '-' || in.at(i - 1) == '=')) return 0;  // an arrow
  out.numbers((between && !is_said ? "is " : "") + std::string(words), i, i + 1);
  return i + 1;
}

// May the spaced hyphen at i be a dash: "It cost 20 - a bargain", "Part 2 - 3 ways to win"?
bool is_dash_of_text(const Input& in, size_t i) {
  if (in_equation(in, i)) return false;
  const size_t next = following(in, i + 1);
  const size_t before = previous(in, i);
  if (is_word_letter(in, next)) return true;
  if (is_word_letter(in, before) && !is_variable(in, next)) return true;
  const size_t end = in.digit(next) ? in.digits_end(next) : next + 1;
  if (in.at(next) == '(' || !in.ends_word(end)) return false;
  const Near word = word_after(in, end);
  return in.space(end) && word.word.size() > 1 && (!is_function_word(word.word) || plural_follows(in, end));
}

// "-" and "/" and "*" between two operands.
size_t read_operator(const Input& in, size_t i, Output& out) {
  const char32_t c = in.at(i);
  if (c != '-' && c != U'–' && c != '*' && c != '/') return 0;
  if (i == 0 || in.at(i + 1) == c || in.at(i - 1) == c) return 0;
  const bool spaced = is_spaced(in, i, i + 1);
  const bool glued = in.at(i - 1) != ' ' && in.at(i + 1) != ' ';
  if ((!spaced && !glued) || !operand_before(in, i) || !operand_after(in, i + 1)) return 0;
  std::string_view words;
  if (c == '*') {
    words = "times";
  } else if (c == '/') {
    if (!spaced && !(in.at(i - 1) == ')' || in_equation(in, i))) return 0;
    words = spaced || in.at(i - 1) == ')' ? "divided by" : "over";
  } else {
    const size_t next = following(in, i + 1);
    const bool has_variable = is_variable(in, next) || !in.digit(previous(in, i));
    if (c == U'–' && !in_equation(in, i)) return 0;
    if (glued && !in_equation(in, i)) return 0;
    if (spaced && is_dash_of_text(in, i)) return 0;
    if (glued && in.letter(previous(in, i)) && !has_variable) return 0;
    words = "minus";
  }
  out.numbers(words, i, i + 1);
  return i + 1;
}

// "^10", "^-19", "^n".
size_t read_power(const Input& in, size_t i, Output& out) {
  if (in.at(i) != '^' || i == 0 || !(in.alnum(i - 1) || in.at(i - 1) == ')')) return 0;
  size_t begin = i + 1;
  const bool bracket = in.at(begin) == '{' || in.at(begin) == '(';
  if (bracket) ++begin;
  size_t end = in.at(begin) == '-' ? begin + 1 : begin;
  if (in.digit(end)) {
    end = in.digits_end(end);
    if (end - begin > 6) return 0;
    out.numbers(to_the_power(in.ascii(begin, end)), i, end);
  } else if (in.letter(end) && in.ends_word(end + 1)) {
    out.numbers(end > begin ? "to the minus" : "to the", i, end);
    out.letters(in.ascii(end, end + 1), end, end + 1);
    ++end;
  } else {
    return 0;
  }
  return bracket && (in.at(end) == '}' || in.at(end) == ')') ? end + 1 : end;
}

size_t read_root(const Input& in, size_t i, Output& out) {
  const char32_t c = in.at(i);
  if (c != U'√' && c != U'∛' && c != U'∜') return 0;
  const bool is_factor = i > 0 && in.digit(i - 1);
  const std::string_view root = c == U'√' ? "square root of" : c == U'∛' ? "cube root of" : "fourth root of";
  const Near before = word_before(in, i);
  const std::string_view lead = is_factor ? "times the " : before.is(" the a ") ? "" : "the ";
  out.numbers(std::string(lead) + std::string(root), i, i + 1);
  return i + 1;
}

struct Function {
  std::string_view written, spoken;
};
constexpr Function kFunctions[] = {
    {"sin", "sine of"},        {"cos", "cosine of"},         {"tan", "tangent of"},      {"log", "log of"},
    {"ln", "natural log of"},  {"exp", "exponential of"},    {"sqrt", "square root of"}, {"lim", "limit of"},
    {"arcsin", "arc sine of"}, {"arctan", "arc tangent of"},
};

// "f(x)", "sin(0)": the bracket says nothing where it holds one operand.
size_t read_function(const Input& in, size_t i, Output& out) {
  if (!in.letter(i) || !in.begins_word(i)) return 0;
  const size_t end = in.letters_end(i);
  if (in.at(end) != '(' || end - i > 6) return 0;
  const std::string name = in.ascii(i, end);
  const size_t close = in.alnum(end + 1) ? in.digits_end(in.letters_end(end + 1)) : end + 1;
  const bool is_simple = in.at(close) == ')' && close > end + 1 && close - end <= 4;
  std::string_view spoken;
  for (const Function& each : kFunctions) {
    if (each.written == name) spoken = each.spoken;
  }
  if (!spoken.empty()) {
    out.numbers(spoken, i, end);
  } else if (name.size() == 1 && is_simple && (in.digit(end + 1) || close == end + 2)) {
    out.letters(name, i, end);
    out.numbers("of", end, end + 1);
  } else {
    return 0;
  }
  if (!is_simple) return end;
  if (in.letter(end + 1)) {
    out.letters(in.ascii(end + 1, close), end + 1, close);
  } else {
    out.numbers(cardinal(in.ascii(end + 1, close)), end + 1, close);
  }
  return close + 1;
}

// "3.2e-5", "6.02E23", "3e8".
size_t read_scientific(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.digit(i) || !in.begins_word(i)) return 0;
  const auto number = parse_number(in, i);
  if (!number || number->grouped) return 0;
  const char32_t e = in.at(number->end);
  const char32_t sign = in.at(number->end + 1);
  const bool has_sign = sign == '-' || sign == '+';
  const size_t begin = number->end + (has_sign ? 2 : 1);
  size_t end = in.digits_end(begin);
  if ((e != 'e' && e != 'E') || end == begin || end - begin > 4 || !in.ends_word(end)) return 0;
  if (e == 'E' && !has_sign && number->decimals.empty()) return 0;  // a model's name
  const std::string power = (sign == '-' ? "-" : "") + in.ascii(begin, end);
  std::string words = power.starts_with("-") ? "to the minus " + cardinal(power.substr(1)) : "to the " + ordinal(power);
  if (const auto unit = parse_unit(in, end)) {
    words += " " + unit->plural;
    end = unit->end;
  }
  out.rule("scientific");
  out.numbers(number_words(*number, options) + " times ten " + words, i, end);
  return end;
}

bool is_operator(char32_t c) {
  return c == '=' || c == '+' || c == '<' || c == '>' || c == '^' || c == '*' || c == U'×' || c == U'≤' || c == U'≥' ||
         c == U'≠' || c == U'±' || c == U'²' || c == U'³';
}

// Beside an operator, and not beside a word?
bool is_beside_operator(const Input& in, size_t begin, size_t end) {
  const size_t next = following(in, end);
  if (is_operator(in.at(next))) return true;
  if (in.at(next) == '-' && next > end && in.at(next + 1) == ' ' && operand_after(in, next + 1)) return true;
  const size_t before = previous(in, begin);
  return before < in.size() && is_operator(in.at(before)) && in.at(next) != '-';
}

// "2x" of "2x + 1", and "mx".
size_t read_term(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.begins_word(i)) return 0;
  if (in.digit(i)) {
    const auto number = parse_number(in, i);
    if (!number || number->grouped || !in.letter(number->end)) return 0;
    const size_t end = in.letters_end(number->end);
    if (end - number->end > 2 || !in.ends_word(end) || !in.lower(number->end) || !is_beside_operator(in, i, end))
      return 0;
    if (in.at(number->end) != 'x' && !in_equation(in, i) && parse_unit(in, number->end)) return 0;
    out.numbers(number_words(*number, options), i, number->end);
    out.letters(in.ascii(number->end, end), number->end, end);
    return end;
  }
  const size_t end = in.letters_end(i);
  if (end - i != 2 || !in.lower(i) || !in.lower(i + 1) || !in_equation(in, i) || !is_beside_operator(in, i, end))
    return 0;
  const std::string name = in.ascii(i, end);
  if (name.find_first_of("aeiou") != std::string::npos) return 0;
  out.letters(name, i, end);
  return end;
}

// "(5!": does a bracket open right before the digits that end before i?
bool is_bracketed_number(const Input& in, size_t i) {
  while (i > 0 && in.digit(i - 1)) --i;
  return i > 0 && in.at(i - 1) == '(';
}

// "5! = 120".
size_t read_factorial(const Input& in, size_t i, Output& out) {
  if (in.at(i) != '!' || i == 0 || !(in.digit(i - 1) || is_variable(in, i - 1))) return 0;
  const char32_t next = in.at(following(in, i + 1));
  const char32_t glued = in.at(i + 1);
  const bool is_bracketed = glued == ')' && in.digit(i - 1) && (in_equation(in, i) || is_bracketed_number(in, i));
  const bool goes_on =
      (next == '=' && glued != '=') || is_bracketed ||
      ((next == '/' || next == '*' || next == '+' || next == U'×') && operand_after(in, following(in, i + 1) + 1));
  if (!goes_on) return 0;
  out.numbers("factorial", i, i + 1);
  return i + 1;
}

}  // namespace

size_t read_maths(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (in.digit(i)) {
    if (const size_t end = read_scientific(in, i, options, out); end > 0) return end;
    return read_term(in, i, options, out);
  }
  if (in.letter(i)) {
    if (const size_t end = read_function(in, i, out); end > 0) return end;
    return read_term(in, i, options, out);
  }
  if (const size_t end = read_factorial(in, i, out); end > 0) return end;
  if (const size_t end = read_comparison(in, i, out); end > 0) return end;
  if (const size_t end = read_power(in, i, out); end > 0) return end;
  if (const size_t end = read_root(in, i, out); end > 0) return end;
  return read_operator(in, i, out);
}

}  // namespace syrinx::text
