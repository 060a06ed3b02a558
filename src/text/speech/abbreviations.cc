#include "text/speech/abbreviations.h"

#include <algorithm>
#include <iterator>

#include "text/unicode.h"

namespace syrinx::text {
namespace {

using enum AbbreviationUse;
// Sorted by `written`.
constexpr Abbreviation kTable[] = {
    {"a.k.a", "also known as", kContinues},
    {"a.m", "", kMayEnd},
    {"acct", "account", kBeforeNumber},
    {"adm", "admiral", kTitle},
    {"al", "al", kMayEnd},
    {"approx", "approximately", kContinues},
    {"appt", "appointment", kMayEnd},
    {"apr", "april", kMayEnd},
    {"apt", "apartment", kBeforeNumber},
    {"art", "article", kCapital},
    {"arts", "articles", kCapital},
    {"assn", "association", kMayEnd},
    {"asst", "assistant", kContinues},
    {"atty", "attorney", kTitle},
    {"aug", "august", kMayEnd},
    {"ave", "avenue", kMayEnd},
    {"b", "born", kBeforeNumber},
    {"blvd", "boulevard", kMayEnd},
    {"brig", "brigadier", kTitle},
    {"bros", "brothers", kMayEnd},
    {"c", "circa", kBeforeNumber},
    {"c.f", "compare", kContinues},
    {"ca", "circa", kBeforeNumber},
    {"capt", "captain", kTitle},
    {"cf", "compare", kContinues},
    {"ch", "chapter", kBeforeNumber},
    {"cir", "circuit", kMayEnd},
    {"civ", "civil", kTitle},
    {"cl", "clause", kBeforeNumber},
    {"cmdr", "commander", kTitle},
    {"co", "company", kMayEnd},
    {"col", "colonel", kTitle},
    {"corp", "corporation", kMayEnd},
    {"cpl", "corporal", kTitle},
    {"d", "died", kBeforeNumber},
    {"dec", "december", kMayEnd},
    {"dept", "department", kMayEnd},
    {"dr", "doctor", kTitle},
    {"e.g", "for example", kContinues},
    {"ed", "edition", kBeforeNumber},
    {"esq", "esquire", kMayEnd},
    {"est", "established", kBeforeNumber},
    {"etc", "et cetera", kMayEnd},
    {"exh", "exhibit", kCapital},
    {"ext", "extension", kBeforeNumber},
    {"feb", "february", kMayEnd},
    {"fig", "figure", kBeforeNumber},
    {"figs", "figures", kBeforeNumber},
    {"flt", "flight", kBeforeNumber},
    {"fr", "father", kTitle},
    {"fri", "friday", kMayEnd},
    {"ft", "fort", kTitle},
    {"gen", "general", kTitle},
    {"gov", "governor", kTitle},
    {"govt", "government", kMayEnd},
    {"hon", "honorable", kTitle},
    {"hwy", "highway", kBeforeNumber},
    {"i.e", "that is", kContinues},
    {"inc", "incorporated", kMayEnd},
    {"jan", "january", kMayEnd},
    {"jr", "junior", kMayEnd},
    {"jul", "july", kMayEnd},
    {"jun", "june", kMayEnd},
    {"ln", "lane", kMayEnd},
    {"lt", "lieutenant", kTitle},
    {"ltd", "limited", kMayEnd},
    {"maj", "major", kTitle},
    {"mar", "march", kBeforeNumber},
    {"messrs", "messrs", kTitle},
    {"misc", "miscellaneous", kContinues},
    {"mlle", "mademoiselle", kTitle},
    {"mme", "madame", kTitle},
    {"mon", "monday", kMayEnd},
    {"mr", "mister", kTitle},
    {"mrs", "missus", kTitle},
    {"ms", "miz", kTitle},
    {"mt", "mount", kTitle},
    {"mtn", "mountain", kMayEnd},
    {"n.b", "note well", kContinues},
    {"no", "number", kBeforeNumber},
    {"nos", "numbers", kBeforeNumber},
    {"nov", "november", kMayEnd},
    {"oct", "october", kMayEnd},
    {"p", "page", kBeforeNumber},
    {"p.m", "", kMayEnd},
    {"p.s", "", kContinues},
    {"para", "paragraph", kBeforeNumber},
    {"paras", "paragraphs", kBeforeNumber},
    {"pg", "page", kBeforeNumber},
    {"ph.d", "", kMayEnd},
    {"pkwy", "parkway", kMayEnd},
    {"pp", "pages", kBeforeNumber},
    {"pres", "president", kTitle},
    {"prof", "professor", kTitle},
    {"pt", "part", kBeforeNumber},
    {"pvt", "private", kTitle},
    {"r", "reigned", kBeforeNumber},
    {"rd", "road", kMayEnd},
    {"rep", "representative", kTitle},
    {"rev", "reverend", kTitle},
    {"rm", "room", kBeforeNumber},
    {"rte", "route", kBeforeNumber},
    {"sat", "saturday", kBeforeNumber},
    {"sec", "section", kBeforeNumber},
    {"sen", "senator", kTitle},
    {"sep", "september", kMayEnd},
    {"sept", "september", kMayEnd},
    {"sgt", "sergeant", kTitle},
    {"sq", "square", kMayEnd},
    {"sr", "senior", kMayEnd},
    {"st", "saint", kTitle},
    {"ste", "suite", kBeforeNumber},
    {"sun", "sunday", kBeforeNumber},
    {"supt", "superintendent", kTitle},
    {"tel", "telephone", kBeforeNumber},
    {"thu", "thursday", kMayEnd},
    {"thurs", "thursday", kMayEnd},
    {"tue", "tuesday", kMayEnd},
    {"tues", "tuesday", kMayEnd},
    {"univ", "university", kMayEnd},
    {"v", "versus", kBetweenNames},
    {"vol", "volume", kBeforeNumber},
    {"vols", "volumes", kBeforeNumber},
    {"vs", "versus", kContinues},
    {"wed", "wednesday", kBeforeNumber},
};
static_assert(std::is_sorted(std::begin(kTable), std::end(kTable),
                             [](const Abbreviation& a, const Abbreviation& b) { return a.written < b.written; }));

}  // namespace

const Abbreviation* find_abbreviation(std::string_view written) {
  if (written.empty() || written.size() > 8) return nullptr;
  const std::string lower = ascii_lower(written);
  const auto* found = std::lower_bound(std::begin(kTable), std::end(kTable), lower,
                                       [](const Abbreviation& a, const std::string& b) { return a.written < b; });
  if (found == std::end(kTable) || found->written != lower) return nullptr;
  return found->use == kCapital && !is_ascii_upper(static_cast<unsigned char>(written[0])) ? nullptr : found;
}

bool is_initialism(std::string_view written) {
  if (written.size() < 3) return false;
  for (size_t i = 0; i < written.size(); ++i) {
    const char32_t c = static_cast<unsigned char>(written[i]);
    if (i % 2 == 0 ? !is_ascii_letter(c) : c != '.') return false;
  }
  return true;
}

}  // namespace syrinx::text
