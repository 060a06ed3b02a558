#include "text/speech/context.h"

namespace syrinx::text {
namespace {

constexpr size_t kMostLetters = 24;  // of a word that is looked at
constexpr size_t kMostGap = 4;       // characters between a word and the number

constexpr std::string_view kFunctionWords =
    " a an the this that these those my your his her its our their of in on at by for with from into onto about as "
    "than if while though although because since until till unless upon over under between among through during "
    "without within against toward towards before after behind beyond near per via despite above below across along "
    "around beside besides beneath throughout to and or but nor yet so i you he she it we they me him us them there "
    "here who whom whose which what when where why how can could will would shall should may might must cannot am "
    "are is was were be been being have has had do does did not never very too also just only then now again still "
    "quite rather almost always often well even more most less least each every any all both off out up down away "
    "back apart ago later earlier today tomorrow yesterday total altogether plus minus times went came goes comes "
    "got gets made makes said says fell rose won lost took stood lay ran paid cost costs seems became remains long "
    "wide tall deep high thick old if isn't wasn't aren't weren't won't can't don't doesn't didn't no yes ";

constexpr std::string_view kSingularDeterminers = " a an another every each ";
constexpr std::string_view kDeterminers = " the this that my your his her its our their one's whose no any some same ";
constexpr std::string_view kAdjectives =
    " new whole mere single huge large small big massive whopping extra full additional record cool nice standard "
    "further separate similar recent first second last next average minimum maximum annual monthly initial final "
    "total estimated reported rare crisp old hefty modest lucrative generous flat fixed short long quick easy tiny "
    "giant good great lovely proposed planned steep near potential ";
// Nouns that an amount of money describes without an article too.
constexpr std::string_view kPricedNouns =
    " bill bills note notes coin coins ticket tickets gift fee fees fine fines loan loans deal deals grant grants "
    "check checks cheque cheques prize prizes tip tips salary salaries budget budgets bonus bonuses reward rewards "
    "donation donations discount discounts investment contract contracts project lawsuit settlement voucher vouchers "
    "seat seats meal meals house houses home homes rebate surcharge deposit subscription refund bet bets ";
// Verbs of the past that stand behind an amount: "Her last $5 bought bread".
constexpr std::string_view kPastVerbs =
    " felt bought brought sold left came gave kept meant made saw held sent did took led stood ran grew broke fell "
    "rose became began built caught flew found hit hurt lost paid put read said set spent taught thought told went "
    "won ";
// In -ed or -ly, but may stand before a noun.
constexpr std::string_view kNoVerbs =
    " red bed shed feed seed speed weed breed need limited unlimited used fixed weekly monthly daily yearly hourly "
    "quarterly family early supply assembly ";
constexpr std::string_view kNotPlural =
    " this is was has his its as us always perhaps across towards besides plus thus minus less unless says does goes "
    "gives takes makes yes gas bus lens news miss pass class boss loss glass press access process address business "
    "success progress congress express various serious previous famous ";
constexpr std::string_view kPlurals =
    " people men women children feet teeth mice geese sheep deer fish police cattle copies persons staff ";
constexpr std::string_view kPointedBefore =
    " no nos apt rm ste hwy rte tel ext approx vol ch p pp fig figs sec art est acct ref ";

bool is_opening(char32_t c) {
  return c == '(' || c == '"' || c == U'“' || c == '[' || c == ':' || c == '#' || c == '=' || c == ',' || c == '-' ||
         c == U'–' || c == '<' || c == '>' || c == '~' || c == '+' || c == U'±';
}

bool is_word_char(const Input& in, size_t i) {
  return in.letter(i) || (in.at(i) == '\'' && in.letter(i + 1) && i > 0 && in.letter(i - 1));
}

}  // namespace

bool is_listed(std::string_view word, std::string_view list) {
  if (word.empty() || word.size() > kMostLetters) return false;
  char key[kMostLetters + 2];
  key[0] = ' ';
  for (size_t k = 0; k < word.size(); ++k) key[k + 1] = ascii_lower(word[k]);
  key[word.size() + 1] = ' ';
  return list.find(std::string_view(key, word.size() + 2)) != std::string_view::npos;
}

bool has_capital(std::string_view word) { return !word.empty() && is_ascii_upper(static_cast<unsigned char>(word[0])); }

bool Near::is(std::string_view list) const { return is_listed(word, list); }

bool is_function_word(std::string_view lower) { return is_listed(lower, kFunctionWords); }

Near word_before(const Input& in, size_t i) {
  Near near;
  size_t end = i;
  bool pointed = false;
  for (size_t gap = 0; end > 0 && gap < kMostGap; ++gap, --end) {
    const char32_t c = in.at(end - 1);
    if (c == '.' && !pointed && in.space(end) && end >= 2 && in.letter(end - 2)) {
      pointed = true;
    } else if (is_opening(c)) {
      near.mark = c;
    } else if (c != ' ' && c != '\n') {
      break;
    }
  }
  size_t begin = end;
  while (begin > 0 && end - begin < kMostLetters && is_word_char(in, begin - 1)) --begin;
  if (begin == end || (begin > 0 && (is_word_char(in, begin - 1) || in.digit(begin - 1)))) return near;
  near.word = ascii_lower(in.ascii(begin, end));
  if (pointed && !near.is(kPointedBefore)) {
    near.word.clear();
    return near;
  }
  near.begin = begin;
  near.end = end;
  near.is_capital = in.upper(begin);
  size_t first = begin;
  while (first > 0 && begin - first < 2 && (in.space(first - 1) || in.at(first - 1) == '"' || in.at(first - 1) == '('))
    --first;
  const char32_t before = first == 0 ? '.' : in.at(first - 1);
  near.is_start = before == '.' || before == '!' || before == '?' || before == U'“' || before == ':' ||
                  (before == '\n' && first > 0);
  return near;
}

Near word_after(const Input& in, size_t i) {
  Near near;
  size_t begin = i;
  while (begin - i < 2 && (in.at(begin) == ' ' || in.at(begin) == '\n')) ++begin;
  size_t end = begin;
  while (end - begin < kMostLetters && is_word_char(in, end)) ++end;
  if (end == begin || is_word_char(in, end) || in.digit(end)) return near;
  near.word = ascii_lower(in.ascii(begin, end));
  near.begin = begin;
  near.end = end;
  near.is_capital = in.upper(begin);
  return near;
}

bool plural_follows(const Input& in, size_t i) {
  if (!in.space(i)) return false;
  const Near next = word_after(in, i);
  if (next.word.empty() || is_function_word(next.word) || next.is_capital) return false;
  if (next.is(kPlurals)) return true;
  return next.word.size() > 3 && next.word.ends_with("s") && !next.word.ends_with("ss") && !next.word.ends_with("'s") &&
         !next.is(kNotPlural);
}

namespace {

// Is the word behind an amount that no article precedes rather a verb or its adverb: "That $50 really helped"?
bool is_verb(const Near& next) {
  if (next.is(kPastVerbs)) return true;
  return next.word.size() > 3 && (next.word.ends_with("ed") || next.word.ends_with("ly")) && !next.is(kNoVerbs);
}

}  // namespace

bool describes_noun(const Input& in, size_t begin, size_t end) {
  if (!in.space(end) && !(in.at(end) == '-' && in.letter(end + 1))) return false;
  const Near next = word_after(in, in.at(end) == '-' ? end + 1 : end);
  if (next.word.empty() || is_function_word(next.word)) return false;
  Near before = word_before(in, begin);
  if (before.mark != 0 && before.mark != '(' && before.mark != U'“' && before.mark != '"') before.word.clear();
  if (before.is(kAdjectives)) before = word_before(in, before.begin);
  if (before.is(" a an ")) return true;
  if (in.space(end) && is_verb(next)) return false;
  if (before.is(kSingularDeterminers)) return !in.space(end) || !plural_follows(in, end);
  return before.is(kDeterminers) || before.word.ends_with("'s") || next.is(kPricedNouns);
}

bool sentence_ends(const Input& in, size_t i) {
  size_t next = i;
  while (next - i < kMostGap &&
         (in.at(next) == '"' || in.at(next) == U'”' || in.at(next) == '\'' || in.at(next) == ')'))
    ++next;
  if (next < in.size() && !in.space(next)) return false;
  while (next < in.size() && in.space(next) && next - i < 64) ++next;
  return next >= in.size() || in.upper(next);
}

bool comes_after(const Input& in, size_t i, std::string_view wanted, std::string_view skipped, int most) {
  for (int k = 0; k < most; ++k) {
    const Near near = word_before(in, i);
    if (near.word.empty()) return false;
    if (near.is(wanted)) return true;
    if (!near.is(skipped)) return false;
    i = near.begin;
  }
  return false;
}

}  // namespace syrinx::text
