#include "models/g2p/homograph_rules.h"

#include <algorithm>
#include <string>

#include "models/g2p/capital_runs.h"
#include "models/g2p/names.h"
#include "text/speech/context.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

using Tokens = std::span<const text::Token>;
using text::is_listed;
using text::TokenKind;

constexpr size_t kMostSteps = 5;  // from a verb back to its auxiliary
constexpr size_t kNear = 8;       // tokens on each side that may name the subject of the sentence

constexpr std::string_view kHave = " have has had having haven't hasn't hadn't ";
constexpr std::string_view kBe =
    " is are was were am be been being isn't aren't wasn't weren't i'm you're we're they're he's she's it's who's ";
constexpr std::string_view kAdverbs =
    " not never ever always often already also just even only still now then once twice yet all both quite very so "
    "more most soon again thus almost since too well rather less ";
constexpr std::string_view kSubjects = " i you he she we they ";
constexpr std::string_view kModals =
    " will would can could shall should may might must do does did won't wouldn't can't cannot couldn't shouldn't "
    "don't doesn't didn't ";
// "the will", "in May", "the beer can": nouns that are written like these.
constexpr std::string_view kBeforeWill =
    " a an the this that my your his her its our their last late old new first second free living final early ";
constexpr std::string_view kBeforeCan = " a an the trash oil beer soup tin paint spray garbage gas ";
constexpr std::string_view kBeforeQuestion =
    " why when where how what which who whom whose rarely seldom never nor so and but or then ";
// "I'll have you read it": have is the main verb.
constexpr std::string_view kBeforeCausative =
    " will would to can could should may might must shall i you he she we they who let's i'll you'll he'll she'll "
    "we'll they'll i'd you'd he'd she'd we'd they'd ";
// "They have read access": the noun.
constexpr std::string_view kBehindNoun =
    " access accesses only permission permissions rights privilege privileges speed speeds latency throughput write "
    "writes operation operations replica replicas mode head heads lock locks ";
constexpr std::string_view kLeadThings = " pencil pencils pipe pipes paint poisoning pellets shot ";
constexpr std::string_view kBeforeVerb = " to will would can could should may might must i you we they who and ";
constexpr std::string_view kFeels = " is are was were am be been being feel feels felt seem seems seemed ";
constexpr std::string_view kIAm = " i'm you're we're they're he's she's ";
constexpr std::string_view kBehindContent = " with to and but as now here there just enough ";
constexpr std::string_view kFish =
    " dinner lunch supper grilled fillet fillets lemon fishing fisherman angler anglers hooked lake pond striped sea "
    "largemouth smallmouth trout salmon perch pike catfish fish menu chips ";
constexpr std::string_view kMusic =
    " guitar guitars guitarist drum drums drummer player players line lines clef amp band solo note notes music "
    "played plays play playing string strings vocal vocals singer keyboard piano song songs album boost treble "
    "speaker speakers sound jazz double ";
constexpr std::string_view kTowns = " town city borough council railroad university county mayor ";

// Empty for a mark and beyond the ends.
std::string_view word_at(Tokens tokens, size_t i) {
  return i < tokens.size() && tokens[i].kind != TokenKind::kPunctuation ? tokens[i].text : std::string_view();
}

std::string_view word_before(Tokens tokens, size_t i) { return i == 0 ? std::string_view() : word_at(tokens, i - 1); }

bool is_adverb(std::string_view word) { return is_listed(word, kAdverbs) || (word.size() > 4 && word.ends_with("ly")); }

bool begins_sentence(Tokens tokens, size_t i) {
  return i == 0 || ends_sentence(tokens[i - 1]) || tokens[i - 1].text == "“" || tokens[i - 1].text == ":";
}

bool is_near(Tokens tokens, size_t i, std::string_view list) {
  const size_t begin = i - std::min(i, kNear);
  const size_t end = i + std::min(tokens.size() - i, kNear + 1);
  for (size_t k = begin; k < end; ++k) {
    if (k != i && is_listed(word_at(tokens, k), list)) return true;
  }
  return false;
}

// Where the word is found that adverbs stand behind; tokens.size() where there is none.
size_t behind_adverbs(Tokens tokens, size_t i) {
  for (size_t step = 0; step < kMostSteps && i > 0; ++step) {
    const std::string_view word = word_at(tokens, --i);
    if (word.empty()) break;
    if (!is_adverb(word)) return i;
  }
  return tokens.size();
}

// "has just read", "Have you ever read", "was read".
bool is_participle(Tokens tokens, size_t i) {
  size_t at = behind_adverbs(tokens, i);
  if (is_listed(word_at(tokens, at), kHave) || word_at(tokens, at).ends_with("'ve")) return true;
  if (is_listed(word_at(tokens, at), kBe)) return true;
  if (!is_listed(word_at(tokens, at), kSubjects)) return false;
  at = behind_adverbs(tokens, at);
  return is_listed(word_at(tokens, at), kHave) && !is_listed(word_before(tokens, at), kBeforeCausative);
}

// Is the word at i a modal, and no noun or name?
bool is_modal(Tokens tokens, size_t i) {
  const std::string_view word = word_at(tokens, i), before = word_before(tokens, i);
  if (!is_listed(word, kModals) || word == "May" || word == "Will") return false;
  if (is_listed(word, " can ")) return !is_listed(before, kBeforeCan);
  return !is_listed(word, " will ") || (!is_listed(before, kBeforeWill) && !before.ends_with("'s"));
}

// "will read it", "doesn't always read", "Did she read it?"
bool is_infinitive(Tokens tokens, size_t i) {
  const size_t at = behind_adverbs(tokens, i);
  if (!is_listed(word_at(tokens, at), kSubjects)) return word_at(tokens, at).ends_with("'ll") || is_modal(tokens, at);
  const size_t verb = behind_adverbs(tokens, at);
  return is_listed(word_at(tokens, verb), kModals) &&
         (begins_sentence(tokens, verb) || is_listed(word_before(tokens, verb), kBeforeQuestion));
}

// "I'll have you read it".
bool is_caused(Tokens tokens, size_t i) {
  const size_t subject = behind_adverbs(tokens, i);
  if (!is_listed(word_at(tokens, subject), kSubjects)) return false;
  const size_t have = behind_adverbs(tokens, subject);
  return word_at(tokens, have) == "have" && is_listed(word_before(tokens, have), kBeforeCausative);
}

// "I am quite content."
bool is_contented(Tokens tokens, size_t i) {
  const std::string_view next = word_at(tokens, i + 1);
  if (!next.empty() && !is_listed(next, kBehindContent)) return false;
  const size_t verb = behind_adverbs(tokens, i);
  if (is_listed(word_at(tokens, verb), kIAm)) return true;
  if (!is_listed(word_at(tokens, verb), kFeels)) return false;
  return is_listed(word_at(tokens, behind_adverbs(tokens, verb)), kSubjects);
}

// A place whose neighbours names.def has near by.
bool is_near_place(Tokens tokens, size_t i, std::string_view lower) {
  const Place* const place = find_place(lower);
  return place != nullptr && is_near(tokens, i, place->near);
}

}  // namespace

std::string_view reading_by_rule(Tokens tokens, size_t i) {
  const std::string word = text::ascii_lower(tokens[i].text);
  if (word == "read") {
    if (is_caused(tokens, i) || is_infinitive(tokens, i)) return "read_present";
    if (!is_participle(tokens, i)) return {};
    return is_listed(word_at(tokens, i + 1), kBehindNoun) ? "read_present" : "read_past";
  }
  if (word == "reading" || word == "mobile") {
    if (!begins_sentence(tokens, i)) return {};
    if (is_near_place(tokens, i, word)) return word == "reading" ? "reading_geo" : "";
    if (is_near(tokens, i, kTowns)) return {};
    return word == "reading" ? "reading_en" : "mobile";
  }
  if (word == "lead") {
    const bool thing = is_listed(word_at(tokens, i + 1), kLeadThings);
    return thing && !is_listed(word_before(tokens, i), kBeforeVerb) ? "lead_nou" : "";
  }
  if (word == "content") return is_contented(tokens, i) ? "content_adj-nou-vrb" : "";
  if (word == "live") return is_listed(word_before(tokens, i), " let ") ? "live_vrb" : "";
  if (word == "bass") return is_near(tokens, i, kFish) && !is_near(tokens, i, kMusic) ? "bass_corp" : "";
  return {};
}

}  // namespace syrinx::g2p
