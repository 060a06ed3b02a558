// Roman numerals: behind a ruler's name, behind what is counted, in brackets, and those that nothing else is.
#include <algorithm>

#include "text/speech/context.h"
#include "text/speech/numbers.h"
#include "text/speech/readers.h"

namespace syrinx::text {
namespace {

constexpr std::string_view kRulers =
    " henry louis charles george james edward william richard elizabeth mary philip philippe john paul pius benedict "
    "gregory leo alexander frederick ferdinand catherine peter nicholas ivan napoleon ramses rameses francis "
    "francois victor otto clement innocent urban boniface xerxes darius ptolemy umberto carlos juan felipe alfonso "
    "christian gustav harald haakon olaf oscar wilhelm franz josef joseph maximilian leopold albert robert david "
    "kenneth constantine justinian theodosius valentinian margaret anne mohammed mehmed murad selim suleiman "
    "cleopatra artaxerxes ";
constexpr std::string_view kCounted =
    " chapter part volume book act scene section war type phase class appendix article level stage title figure "
    "table apollo bowl mark rocky fantasy episode season canto psalm unit version grade world vol. ";
constexpr std::string_view kPages =
    " page pages paragraph clause line verse chapter section scene act part subsection item subparagraph ";
// A lone V behind these in small letters.
constexpr std::string_view kActs = " act scene chapter part book volume phase stage title article ";
// Behind "type I" in small letters, where "I" might begin a clause.
constexpr std::string_view kBehindTypeOne =
    " diabetes error errors collagen hypersensitivity trial trials study studies hearing interferon and or to ";
// Words after which "Elizabeth I" is a queen and not two speakers; the verbs only where a sentence begins with her or
// one of kBeforeRuler stands before her.
constexpr std::string_view kAfterFirst = " of ruled reigned died became and in ";
constexpr std::string_view kVerbsOfFirst = " was is had came went made ";
constexpr std::string_view kBeforeRuler =
    " king queen pope emperor empress tsar czar sultan duke of under by when that ";
// Verbs of the pronoun behind "Part", "Book", ...: "The Book I read".
constexpr std::string_view kFirstPerson =
    " am think know knew said say hope want love like do don't need believe guess feel felt saw see read wrote "
    "bought thought heard got get use live remember mean always just really never still have grew find found met "
    "told chose take took play write ";
constexpr std::string_view kRarelyFirst = " mark world version rocky fantasy unit level ";
constexpr std::string_view kBeforeFirst = " the a an this that ";
constexpr std::string_view kSizes = " xl xx xxx li lv lx ";
// Words that no numeral follows, and numerals that are as often an abbreviation.
constexpr std::string_view kDeterminers = " a an the this that my your his her its our their some any no by for with ";
constexpr std::string_view kDoubtful = " IV VI XI XL XX XXX XV LI LV LX ";
constexpr std::string_view kDoubtfulInBrackets = " VI XI XX XXX ";  // an editor, a letter, kisses
constexpr int kMostInBrackets = 39;
constexpr size_t kLongestInBrackets = 7;  // letters
constexpr size_t kFarthestBracket = 300;  // characters to the next numeral of a list

bool in_capitals(std::string_view word) { return word.size() > 1 && word == ascii_upper(word); }

// Does the numeral before or behind `value` stand in brackets near `open`?
bool has_neighbour(const Input& in, size_t open, int value) {
  const size_t begin = open - std::min(open, kFarthestBracket);
  const size_t end = std::min(in.size(), open + kFarthestBracket);
  for (size_t k = begin; k < end; ++k) {
    if (in.at(k) != '(' || !in.letter(k + 1)) continue;
    size_t close = k + 1;
    while (close - k <= kLongestInBrackets && in.letter(close)) ++close;
    if (in.at(close) != ')') continue;
    const int other = roman_value(ascii_upper(in.ascii(k + 1, close)));
    if (other > 0 && (other == value - 1 || other == value + 1)) return true;
  }
  return false;
}

// The word before a numeral, as far as it decides.
struct Before {
  std::string_view word;
  std::string_view earlier;  // the word before it
  bool starts = false;       // it begins the sentence
  bool ruler = false;
  bool counted = false;
};

Before before_numeral(const Output& out) {
  Before before;
  const std::vector<Token>& tokens = out.tokens();
  if (tokens.empty() || tokens.back().kind == TokenKind::kPunctuation) return before;
  before.word = tokens.back().text;
  before.starts = tokens.size() == 1 || tokens[tokens.size() - 2].kind == TokenKind::kPunctuation;
  if (!before.starts) before.earlier = tokens[tokens.size() - 2].text;
  before.ruler = has_capital(before.word) && is_listed(before.word, kRulers);
  before.counted = is_listed(before.word, kCounted);
  return before;
}

std::string next_word(const Input& in, size_t end) {
  const size_t next = in.skip_spaces(end);
  return in.ascii(next, in.letters_end(next));
}

// "Elizabeth I was crowned"; but "Thanks David I made it".
bool is_first_ruler(const std::string& next, const Before& before) {
  if (is_listed(next, kAfterFirst)) return true;
  return is_listed(next, kVerbsOfFirst) && (before.starts || is_listed(before.earlier, kBeforeRuler));
}

// "Part I covers", "the Mark I tank"; but "Tell Mark I said hi", "The Book I read".
bool is_first_counted(const std::string& next, const Before& before) {
  if (!has_capital(before.word)) return is_listed(next, kBehindTypeOne);
  if (is_listed(next, kFirstPerson)) return false;
  const bool pointed_at = is_listed(before.earlier, kBeforeFirst);
  if (is_listed(before.word, kRarelyFirst)) return pointed_at && before.word == "Mark";
  return !(pointed_at && next.ends_with("ed") && !is_listed(before.word, " war act "));
}

// "I", "V", "X": a letter or a pronoun unless what stands before it counts.
bool is_single_numeral(const Input& in, size_t end, std::string_view letters, const Before& before) {
  if (letters == "I") {
    if (!before.ruler && !before.counted) return false;
    if (in.skip_spaces(end) >= in.size() || !in.space(end)) return true;
    const std::string next = next_word(in, end);
    return before.ruler ? is_first_ruler(next, before) : is_first_counted(next, before);
  }
  if (before.ruler || (before.counted && has_capital(before.word))) return true;
  return before.counted && letters == "V" && is_listed(before.word, kActs);
}

// "Give IV antibiotics", "Size XL", "the Civic LX": no numeral of a name.
bool is_numeral_of_name(std::string_view letters, const Before& before, const NormalizeOptions& options) {
  if (!has_capital(before.word) || is_listed(before.word, kDeterminers)) return false;
  if (kDoubtful.find(" " + std::string(letters) + " ") == std::string_view::npos) return true;
  if (in_capitals(before.word) || is_listed(letters, kSizes)) return false;
  return !(before.starts && options.is_word && options.is_word(ascii_lower(before.word)));
}

bool is_numeral(const Input& in, size_t end, std::string_view letters, const Before& before,
                const NormalizeOptions& options) {
  if (letters.size() == 1) return is_single_numeral(in, end, letters, before);
  if (letters == "II" || letters == "III") return true;
  if (before.ruler || before.counted) return true;
  return is_numeral_of_name(letters, before, options);
}

// In small letters: "Scene ii", "page iv".
bool is_small_numeral(const Input& in, size_t end, std::string_view letters, const Before& before) {
  if (!before.counted && !is_listed(before.word, kPages)) return false;
  return letters.size() > 1 || (in.at(end) != '\'' && !in.space(end)) || end >= in.size();
}

// "WWII", "WWI-era".
size_t read_world_war(const Input& in, size_t i, size_t end, Output& out) {
  const bool second = end - i == 4 && in.ascii(i, end) == "WWII";
  if (!second && !(end - i == 3 && in.ascii(i, end) == "WWI")) return 0;
  out.word("World", i, end);
  out.word("War", i, end);
  out.numbers(second ? "two" : "one", i, end);
  return end;
}

}  // namespace

bool is_in_list(const Input& in, size_t open, size_t close) {
  if (in.at(open) != '(' || in.at(close) != ')' || close - open < 2 || close - open > kLongestInBrackets + 1)
    return false;
  const std::string letters = in.ascii(open + 1, close);
  const std::string upper = ascii_upper(letters);
  const int value = roman_value(upper);
  if (value <= 0 || value > kMostInBrackets || (letters != upper && letters != ascii_lower(letters))) return false;
  const std::string_view doubtful = letters == upper ? kDoubtful : kDoubtfulInBrackets;
  if (upper.size() > 1 && !is_listed(upper, ascii_lower(doubtful))) return true;
  return has_neighbour(in, open, value) || word_before(in, open).is(kPages);
}

size_t read_roman(const Input& in, size_t i, const NormalizeOptions& options, Output& out) {
  if (!in.letter(i) || !in.begins_word(i) || (i > 0 && !in.space(i - 1) && in.at(i - 1) != '(')) return 0;
  const size_t end = in.letters_end(i);
  if (const size_t war = read_world_war(in, i, end, out); war > 0) return war;
  if (end - i > 8 || in.digit(end) || in.at(end) == '-') return 0;
  const std::string letters = in.ascii(i, end);
  const std::string upper = ascii_upper(letters);
  const bool small = letters != upper;
  const int value = roman_value(upper);
  if (value == 0 || (small && letters != ascii_lower(letters))) return 0;
  const bool possessive = in.at(end) == '\'';
  if (possessive && !(in.at(end + 1) == 's' && letters.size() > 1)) return 0;
  Before before = before_numeral(out);
  if (i == 0 || !is_in_list(in, i - 1, end)) {
    const bool initial = in.at(end) == '.' && letters.size() == 1 && in.skip_spaces(end + 1) < in.size();
    if (initial ||
        (small ? !is_small_numeral(in, end, letters, before) : !is_numeral(in, end, letters, before, options)))
      return 0;
  } else {
    before.ruler = false;
  }
  const std::string words = cardinal(std::to_string(value));
  out.numbers((before.ruler ? "the " + to_ordinal(words) : words) + (possessive ? "'s" : ""), i, end);
  return possessive ? end + 2 : end;
}

}  // namespace syrinx::text
