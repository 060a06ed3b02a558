// Words, abbreviations and initialisms.
#include "text/speech/abbreviations.h"
#include "text/speech/context.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr size_t kMostBrokenLetters = 32;
constexpr size_t kMostDottedLetters = 64;  // with their points
constexpr size_t kMostNameLetters = 32;

// "w/o", "w/", "c/o": returns the end and the word.
size_t read_with(const Input& in, size_t i, Output& out) {
  if (in.matches(i, "c/o") && in.ends_word(i + 3)) {
    out.word("care", i, i + 3);
    out.word("of", i, i + 3);
    return i + 3;
  }
  if (!in.matches(i, "w/") || !in.begins_word(i)) return 0;
  if (in.matches(i, "w/o") && in.ends_word(i + 3)) {
    out.word("without", i, i + 3);
    return i + 3;
  }
  if (!in.space(i + 2)) return 0;
  out.word("with", i, i + 2);
  return i + 2;
}

const Token* last_word(const Output& out) {
  return out.tokens().empty() || out.tokens().back().kind == TokenKind::kPunctuation ? nullptr : &out.tokens().back();
}

// "St." and "Dr." behind a name are a street's.
std::string_view spoken_form(const Abbreviation& found, const Input& in, size_t end, const Output& out) {
  const bool name_follows = in.at(end) == ' ' && in.upper(end + 1);
  const Token* before = last_word(out);
  const bool after_name = before != nullptr && (has_capital(before->text) || before->number);
  if (found.written == "st" && after_name && !name_follows) return "street";
  if (found.written == "dr" && after_name && !name_follows) return "drive";
  if (found.written == "ft" && !name_follows) return "feet";
  return found.spoken;
}

// "Roe v. Wade", "Bell Inc. v. Watts".
bool is_between_names(const Input& in, size_t begin, size_t end) {
  if (in.at(end) != ' ' || !in.upper(end + 1) || begin < 2 || !in.space(begin - 1)) return false;
  size_t name = begin - 1;
  if (in.at(name - 1) == '.') --name;
  size_t first = name;
  while (first > 0 && name - first < kMostNameLetters && (in.letter(first - 1) || in.at(first - 1) == '\'')) --first;
  return first < name && in.upper(first);
}

// "Main St, Springfield", "on 5th Ave": a street without a stop, behind its name.
std::string_view bare_street(const Input& in, size_t i, size_t end, const Output& out) {
  const std::string written = in.ascii(i, end);
  if (written != "St" && written != "Ave" && written != "Blvd" && written != "Rd" && written != "Pkwy") return {};
  const Token* const before = last_word(out);
  if (before == nullptr || i == 0 || in.at(i - 1) != ' ' || is_function_word(ascii_lower(before->text))) return {};
  const bool ends = in.space(end) || in.at(end) == ',' || in.at(end) == ';' || in.at(end) == ')';
  if (!(has_capital(before->text) || before->number) || !ends || (in.at(end) == ' ' && in.upper(end + 1))) return {};
  return written == "St" ? "street" : find_abbreviation(written)->spoken;
}

// "U.S.", "J.R.R.", "e.g.", "Ph.D.": letters and points, behind which the word ends.  `last_point` is the end with it.
size_t dotted_end(const Input& in, size_t i) {
  size_t end = i;
  while (in.letter(end) && end - i < kMostDottedLetters) {
    end = in.letters_end(end);
    if (in.at(end) != '.' || !in.letter(end + 1)) break;
    ++end;
  }
  return end;
}

// Does a sentence end here, so that the point of an abbreviation must also be said?
bool ends_sentence(const Input& in, size_t behind_point) {
  size_t next = behind_point;
  while (next < in.size() && (in.at(next) == '"' || in.at(next) == U'”' || in.at(next) == '\'' || in.at(next) == ')'))
    ++next;
  if (next < in.size() && !in.space(next)) return false;
  next = in.skip_spaces(next);
  return next >= in.size();
}

size_t read_initialism(const Input& in, size_t i, size_t end, Output& out) {
  const std::string written = in.ascii(i, end);
  const bool point_follows = in.at(end) == '.';
  if (!is_initialism(written)) return 0;
  out.rule("initialism");
  out.letters(written, i, end);
  return point_follows && !ends_sentence(in, end + 1) ? end + 1 : end;
}

}  // namespace

size_t read_abbreviation(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.letter(i) || !in.begins_word(i)) return 0;
  if (const size_t end = read_with(in, i, out); end > 0) return end;
  const size_t end = dotted_end(in, i);
  const std::string written = in.ascii(i, end);
  const bool initial = written.size() == 1 && in.upper(i);  // "B. 5", "J. R. R. Tolkien"
  const Abbreviation* found = initial ? nullptr : find_abbreviation(written);
  if (const std::string_view street = bare_street(in, i, end, out); !street.empty()) {
    out.word(street, i, end);
    return end;
  }
  const bool pointed = in.at(end) == '.';
  const bool bare_title = !pointed && found != nullptr && found->use == AbbreviationUse::kTitle && in.upper(i) &&
                          in.at(end) == ' ' && in.upper(end + 1) && is_listed(written, " mr mrs ms dr prof st ");
  if (found != nullptr && (pointed || bare_title || written == "vs" || written.find('.') != std::string::npos)) {
    const bool number_follows = in.digit(in.skip_spaces(end + 1));
    const bool title = found->use == AbbreviationUse::kTitle && !in.upper(i);
    const bool wants_number = found->use == AbbreviationUse::kBeforeNumber || found->use == AbbreviationUse::kCapital;
    if ((wants_number && !number_follows) || title) return 0;
    if (found->use == AbbreviationUse::kBetweenNames && !is_between_names(in, i, end + 1)) return 0;
    const bool keep_point = pointed && ends_sentence(in, end + 1);
    const size_t behind = pointed && !keep_point ? end + 1 : end;
    if (found->spoken.empty()) {
      out.letters(written, i, behind);
      return behind;
    }
    std::string spoken(spoken_form(*found, in, end + 1, out));
    if (in.upper(i)) spoken[0] = ascii_upper(spoken[0]);
    for (std::string_view rest = spoken; !rest.empty();) {
      const size_t gap = std::min(rest.find(' '), rest.size());
      out.word(rest.substr(0, gap), i, behind);
      rest.remove_prefix(std::min(gap + 1, rest.size()));
    }
    return behind;
  }
  if (const size_t behind = read_initialism(in, i, end, out); behind > 0) return behind;
  // A single initial before a name: the point says nothing.
  if (pointed && initial && written != "I" && in.at(end + 1) == ' ' && in.upper(end + 2)) {
    out.rule("initialism");
    out.letters(written, i, end + 1);
    return end + 1;
  }
  return 0;
}

namespace {

// "infor-\nmation": a hyphen at the end of a line.  Returns the end of the second part, or 0.
size_t read_broken_word(const Input& in, size_t i, size_t end, const NormalizeOptions& options, Output& out) {
  if (in.at(end) != '-' || in.at(end + 1) != '\n' || !in.lower(end + 2)) return 0;
  size_t second = end + 2;
  while (second - end < kMostBrokenLetters && in.letter(second)) ++second;
  const std::string head = in.ascii(i, end);
  const std::string tail = in.ascii(end + 2, second);
  const bool is_whole = options.is_word && options.is_word(ascii_lower(head + tail));
  out.rule("line-break");
  out.word(is_whole ? head + tail : head + "-" + tail, i, second);
  return second;
}

}  // namespace

size_t read_word(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.letter(i) && !(in.at(i) == '\'' && in.letter(i + 1))) return 0;
  size_t end = i + 1;
  while (end < in.size()) {
    if (in.letter(end) || ((in.at(end) == '\'' || in.at(end) == '-') && in.letter(end + 1) && in.letter(end - 1))) {
      ++end;
    } else {
      break;
    }
  }
  if (const size_t behind = read_broken_word(in, i, end, options, out); behind > 0) return behind;
  // "AT&T", "R&B"; "A4", "MP3s": single letters and capitals before digits are spelled.
  const std::string written = in.ascii(i, end);
  const bool capitals = written == ascii_upper(written) && written.find_first_of("'-") == std::string::npos;
  if (capitals && end - i <= 3 && in.at(end) == '&' && in.upper(end + 1) && in.letters_end(end + 1) - end <= 3) {
    const size_t second = in.letters_end(end + 1);
    out.letters(written, i, end);
    out.rule("sign");
    out.numbers("and", end, end + 1);
    out.rule({});
    out.letters(in.ascii(end + 1, second), end + 1, second);
    return second;
  }
  const bool digits_follow = in.digit(end) || (in.at(end) == '-' && in.digit(end + 1));
  if (digits_follow && (end - i == 1 || (capitals && end - i <= 2))) {
    out.letters(written, i, end);
    return end;
  }
  // A lone capital in the middle of a sentence, before a pause, is a letter: "vitamin A."
  const Token* before = last_word(out);
  const bool is_mark =
      before != nullptr && is_listed(before->text, " an grade vitamin plan type class group team letter ");
  if (written == "A" && before != nullptr && (!in.space(end) || is_mark)) {
    out.letters(written, i, end);
    return end;
  }
  if (in.at(end) == '\'' && in.at(end - 1) == 's') ++end;
  out.word(in.ascii(i, end), i, end);
  return end;
}

}  // namespace syrinx::text
