// Roman numerals: behind a ruler's name, behind what is counted, in brackets, and those that nothing else is.
#include <algorithm>

#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr std::string_view kRulers =
    " henry louis charles george james edward william richard elizabeth mary philip philippe john paul pius benedict "
    "gregory leo alexander frederick ferdinand catherine peter nicholas ivan napoleon ramses rameses francis francois "
    "victor otto clement innocent urban boniface xerxes darius ptolemy umberto carlos juan felipe alfonso christian "
    "gustav harald haakon olaf oscar wilhelm franz josef joseph maximilian leopold albert robert david kenneth "
    "constantine justinian theodosius valentinian margaret anne mohammed mehmed murad selim suleiman cleopatra "
    "artaxerxes ";
constexpr std::string_view kCounted =
    " chapter part volume book act scene section war type phase class appendix article level stage title figure table "
    "apollo bowl mark rocky fantasy episode season canto psalm unit version grade world vol. ";
constexpr std::string_view kPages = " page pages paragraph clause line verse chapter section scene act part ";
// A lone V behind these in small letters.
constexpr std::string_view kActs = " act scene chapter part book volume phase stage title article ";
// Behind "type I" in small letters, where "I" might begin a clause.
constexpr std::string_view kBehindTypeOne =
    " diabetes error errors collagen hypersensitivity trial trials study studies hearing interferon and or to ";
// Verbs after which "Elizabeth I" is a queen and not two speakers.
constexpr std::string_view kAfterFirst = " was is had of ruled reigned died became came went made and in ";
// Words that no numeral follows, and numerals that are as often an abbreviation.
constexpr std::string_view kDeterminers = " a an the this that my your his her its our their some any no by for with ";
constexpr std::string_view kDoubtful = " IV VI XI XL XX XXX XV LI LV LX ";
constexpr int kMostInBrackets = 39;
constexpr size_t kFarthestBracket = 300;  // characters to the next numeral of a list

bool listed(std::string_view word, std::string_view list) {
  return list.find(" " + ascii_lower(word) + " ") != std::string_view::npos;
}

bool capitalised(std::string_view word) { return !word.empty() && is_ascii_upper(static_cast<unsigned char>(word[0])); }

bool in_capitals(std::string_view word) { return word.size() > 1 && word == ascii_upper(word); }

bool has_bracket(const Input& in, size_t i, std::string_view bracket) {
  const size_t begin = i - std::min(i, kFarthestBracket);
  const size_t end = std::min(in.size(), i + kFarthestBracket);
  for (size_t k = begin; k < end; ++k) {
    if (in.at(k) == '(' && in.matches(k, bracket)) return true;
  }
  return false;
}

// "(ii)", and "(i)" where "(ii)" is near.
bool is_in_list(const Input& in, size_t i, size_t end, std::string_view upper, int value) {
  if (i == 0 || in.at(i - 1) != '(' || in.at(end) != ')' || value > kMostInBrackets) return false;
  const bool doubtful = upper.size() == 1 || (in.upper(i) && kDoubtful.find(upper) != std::string_view::npos);
  if (!doubtful) return true;
  if (upper == "I") return has_bracket(in, i, "(ii)");
  if (upper == "V") return has_bracket(in, i, "(iv)") || has_bracket(in, i, "(vi)");
  if (upper == "X") return has_bracket(in, i, "(ix)") || has_bracket(in, i, "(xi)");
  return has_bracket(in, i, "(iii)") || has_bracket(in, i, "(v)") || has_bracket(in, i, "(x)");
}

// The word before a numeral, as far as it decides.
struct Before {
  std::string_view word;
  bool ruler = false;
  bool counted = false;
};

std::string next_word(const Input& in, size_t end) {
  const size_t next = in.skip_spaces(end);
  return in.ascii(next, in.letters_end(next));
}

// "I", "V", "X": a letter or a pronoun unless what stands before it counts.
bool is_single_numeral(const Input& in, size_t end, std::string_view letters, const Before& before) {
  const bool stops = in.skip_spaces(end) >= in.size() || !in.space(end);
  if (letters == "I" && before.ruler) return stops || listed(next_word(in, end), kAfterFirst);
  if (before.ruler || (before.counted && capitalised(before.word))) return true;
  if (!before.counted) return false;
  if (letters == "I") return stops || listed(next_word(in, end), kBehindTypeOne);
  return letters == "V" && listed(before.word, kActs);
}

bool is_numeral(const Input& in, size_t end, std::string_view letters, const Before& before) {
  if (letters.size() == 1) return is_single_numeral(in, end, letters, before);
  if (letters == "II" || letters == "III") return true;
  if (before.ruler || before.counted) return true;
  if (!capitalised(before.word) || listed(before.word, kDeterminers)) return false;
  return !in_capitals(before.word) || kDoubtful.find(" " + std::string(letters) + " ") == std::string_view::npos;
}

// In small letters: "Scene ii", "page iv".
bool is_small_numeral(const Input& in, size_t end, std::string_view letters, const Before& before) {
  if (!before.counted && !listed(before.word, kPages)) return false;
  return letters.size() > 1 || (in.at(end) != '\'' && !in.space(end)) || end >= in.size();
}

}  // namespace

size_t read_roman(const Input& in, size_t i, const NormalizeOptions&, Output& out) {
  if (!in.letter(i) || !in.begins_word(i) || (i > 0 && !in.space(i - 1) && in.at(i - 1) != '(')) return 0;
  const size_t end = in.letters_end(i);
  if (end - i > 8 || in.digit(end) || in.at(end) == '-') return 0;
  const std::string letters = in.ascii(i, end);
  const std::string upper = ascii_upper(letters);
  const bool small = letters != upper;
  const int value = roman_value(upper);
  if (value == 0 || (small && letters != ascii_lower(letters))) return 0;
  const bool possessive = in.at(end) == '\'';
  if (possessive && !(in.at(end + 1) == 's' && letters.size() > 1)) return 0;
  Before before;
  if (!out.tokens().empty() && out.tokens().back().kind != TokenKind::kPunctuation)
    before.word = out.tokens().back().text;
  before.ruler = capitalised(before.word) && listed(before.word, kRulers);
  before.counted = listed(before.word, kCounted);
  if (!is_in_list(in, i, end, upper, value)) {
    const bool initial = in.at(end) == '.' && letters.size() == 1 && in.skip_spaces(end + 1) < in.size();
    if (initial || (small ? !is_small_numeral(in, end, letters, before) : !is_numeral(in, end, letters, before)))
      return 0;
  } else {
    before.ruler = false;
  }
  const std::string words = cardinal(std::to_string(value));
  out.numbers((before.ruler ? "the " + to_ordinal(words) : words) + (possessive ? "'s" : ""), i, end);
  return possessive ? end + 2 : end;
}

}  // namespace syrinx::text
