#include "models/g2p/english.h"

#include <algorithm>
#include <optional>

#include "models/g2p/compound.h"
#include "models/g2p/fallback.h"
#include "models/g2p/homograph_rules.h"
#include "models/g2p/homographs.h"
#include "models/g2p/letters.h"
#include "models/g2p/lexicon.h"
#include "models/g2p/tagger.h"
#include "models/g2p/user_dictionary.h"
#include "models/g2p/word_forms.h"
#include "models/g2p/word_rules.h"

namespace syrinx::g2p {

const char* word_kind_name(WordKind kind) {
  switch (kind) {
    case WordKind::kLexicon: return "lexicon";
    case WordKind::kSuffix: return "suffix";
    case WordKind::kNumber: return "number";
    case WordKind::kFallback: return "fallback";
    case WordKind::kEscape: return "escape";
    case WordKind::kSpelled: return "spelled";
    case WordKind::kUser: return "user";
    case WordKind::kPunctuation: return "punctuation";
  }
  return "?";
}

bool Phonemized::speaks() const {
  return std::any_of(words.begin(), words.end(),
                     [](const PhonemizedWord& w) { return w.kind != WordKind::kPunctuation; });
}

namespace {
constexpr size_t kMostPartsOfAWord = 12;  // no word of the lexicon has more, and hostile text may have any number

struct Place {
  const std::vector<text::Token>& tokens;
  size_t i;
};
}  // namespace

struct EnglishG2p::Impl {
  Impl(Lexicon l, UserDictionary u, std::unique_ptr<const Fallback> f, bool is_british)
      : lexicon(std::move(l)), user(std::move(u)), fallback(std::move(f)), british(is_british) {}

  Spoken say_token(const std::vector<text::Token>& tokens, size_t i, Tag tag, Following& following) const;
  Spoken say_word(const std::vector<text::Token>& tokens, size_t i, Tag tag, Following& following) const;
  std::optional<Spoken> say_users(std::string_view word, Following& following) const;
  // A word that stands in no sentence has no `sentence`.
  Spoken say_parts(std::string_view word, Tag tag, Following& following, const Place* sentence) const;
  std::optional<Spoken> say_homograph(std::string_view part, const Place* sentence) const;
  Spoken say_unknown(std::string_view word) const;
  std::vector<text::Token> read_forms(std::string_view source, const text::NormalizeOptions& options,
                                      std::vector<text::Token> tokens) const;
  WordRules rules() const { return WordRules(lexicon, british); }

  Lexicon lexicon;
  UserDictionary user;
  std::unique_ptr<const Fallback> fallback;
  bool british;
};

// The user's word, or a possessive of it; a respelling goes through the rules, not through the dictionary again.
std::optional<Spoken> EnglishG2p::Impl::say_users(std::string_view word, Following& following) const {
  const bool possessive = word.ends_with("'s");
  const UserDictionary::Word* found = user.find(word);
  const bool stem = found == nullptr && possessive;
  if (stem) found = user.find(word.substr(0, word.size() - 2));
  if (found == nullptr) return std::nullopt;
  Spoken said{found->phonemes, WordKind::kUser, SoundRule::kDictionary};
  std::string_view rest = found->respelled;
  while (!rest.empty()) {  // from right to left, as everywhere
    const size_t gap = rest.find_last_of(" \t");
    const std::string_view last = gap == std::string_view::npos ? rest : rest.substr(gap + 1);
    if (!last.empty()) {
      Phonemes part = say_parts(last, Tag::kNoun, following, nullptr).phonemes;
      said.phonemes = said.phonemes.empty() ? part : part + U" " + said.phonemes;
    }
    rest = gap == std::string_view::npos ? std::string_view() : rest.substr(0, gap);
  }
  if (stem) said.phonemes = with_s(said.phonemes, british);
  following.see(said.phonemes, word);
  return said;
}

Spoken EnglishG2p::Impl::say_unknown(std::string_view word) const {
  if (fallback != nullptr && word.size() > 1) {
    if (Phonemes phonemes = fallback->say(word); !phonemes.empty())
      return {phonemes, WordKind::kFallback, SoundRule::kLetterToSound};
  }
  return {rules().spell(word).value_or(Phonemes()), WordKind::kSpelled, SoundRule::kSpelled};
}

// A word or its part between hyphens by the reading that the sentence gives it; nothing where it has only one.
std::optional<Spoken> EnglishG2p::Impl::say_homograph(std::string_view part, const Place* sentence) const {
  if (sentence == nullptr) return std::nullopt;
  const Homographs& homographs = Homographs::builtin();
  const HomographReading* reading = nullptr;
  if (part.size() == sentence->tokens[sentence->i].text.size() && homographs.find(part) != nullptr)
    reading = homographs.named(part, reading_by_rule(sentence->tokens, sentence->i));
  if (reading == nullptr) reading = homographs.choose(sentence->tokens, sentence->i, part);
  return reading == nullptr ? std::nullopt : rules().say_reading(part, *reading);
}

// The longest known tail first, then what is left of it, so that each part knows the sound that follows.
Spoken EnglishG2p::Impl::say_parts(std::string_view word, Tag tag, Following& following, const Place* sentence) const {
  const std::vector<std::string_view> parts = cut_word(word);
  std::vector<SaidPart> said;
  std::vector<std::string> readings;  // from right to left
  Spoken whole;
  const char* read_from = nullptr;  // where the last of them begins in `word`
  bool spells = false;              // it begins with spelled letters
  for (size_t right = parts.size(); right > 0;) {
    size_t left = right - std::min(right, kMostPartsOfAWord);
    std::optional<Spoken> found;
    std::string_view tail;
    const char* const end = parts[right - 1].data() + parts[right - 1].size();
    for (; left < right && !found; ++left) {
      const char* begin = parts[left].data();
      tail = std::string_view(begin, static_cast<size_t>(end - begin));
      if (is_silent(tail)) continue;
      found = say_homograph(tail, sentence);
      if (!found) found = rules().say(tail, tag, following);
    }
    left = found ? left - 1 : right - 1;
    if (!found && !is_silent(parts[left])) found = say_unknown(parts[left]);
    if (found) {
      whole.kind = std::max(whole.kind, found->kind);
      whole.rule = said.empty() ? found->rule : SoundRule::kCompound;
      const bool is_spelled = found->rule == SoundRule::kSpelled;
      std::string part = found->read_as.empty() ? read_as(tail, found->rule) : std::move(found->read_as);
      // A part that is silent, or letters that are spelled, stand between two words.
      if (!said.empty() && (end != read_from || spells || is_spelled)) part += ' ';
      readings.push_back(std::move(part));
      read_from = tail.data();
      spells = is_spelled;
      following.see(found->phonemes, parts[left]);
      said.push_back({parts[left], std::move(found->phonemes)});
    }
    right = left;
  }
  std::reverse(said.begin(), said.end());
  for (size_t k = readings.size(); k-- > 0;) whole.read_as += readings[k];
  whole.phonemes = join_parts(std::move(said));
  return whole;
}

Spoken EnglishG2p::Impl::say_word(const std::vector<text::Token>& tokens, size_t i, Tag tag,
                                  Following& following) const {
  const std::string& word = tokens[i].text;
  if (!user.empty()) {
    if (auto said = say_users(word, following)) return *std::move(said);
  }
  const Place sentence{tokens, i};
  return say_parts(word, tag, following, &sentence);
}

Spoken EnglishG2p::Impl::say_token(const std::vector<text::Token>& tokens, size_t i, Tag tag,
                                   Following& following) const {
  const text::Token& token = tokens[i];
  Spoken said;
  switch (token.kind) {
    case text::TokenKind::kPunctuation: said = {from_utf8(token.text), WordKind::kPunctuation}; break;
    case text::TokenKind::kPhonemes:
      said = {from_utf8(token.phonemes), WordKind::kEscape, SoundRule::kPhonemes};
      if (!token.rule.empty()) said = {std::move(said.phonemes), WordKind::kLexicon, SoundRule::kTable};
      break;
    case text::TokenKind::kLetters: said = say_letters(token, rules()); break;
    case text::TokenKind::kWord: said = say_word(tokens, i, tag, following); break;
  }
  following.see(said.phonemes, token.text);
  if (token.stress) said.phonemes = with_stress(said.phonemes, *token.stress);
  if (token.number) said.kind = WordKind::kNumber;
  return said;
}

std::vector<text::Token> EnglishG2p::Impl::read_forms(std::string_view source, const text::NormalizeOptions& options,
                                                      std::vector<text::Token> tokens) const {
  const auto say = [this](std::string_view word) {
    Following none;
    return say_parts(word, Tag::kProperNoun, none, nullptr).phonemes;
  };
  return read_word_forms({source, lexicon, british, options.is_own_word, say}, std::move(tokens));
}

namespace {

ReadWord read_word(const text::Token& token, const Spoken& said, const PhonemizedWord& word) {
  ReadWord read{said.read_as.empty() ? read_as(token.text, said.rule) : said.read_as, token.rule,
                sound_rule_name(said.rule), word.source, word.phonemes};
  if (read.rule.empty()) read.rule = read.sound;
  return read;
}

}  // namespace

EnglishG2p::EnglishG2p(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
EnglishG2p::~EnglishG2p() = default;

Result<std::shared_ptr<const EnglishG2p>> EnglishG2p::load(const G2pFiles& files) {
  SYRINX_TRY(Lexicon lexicon, Lexicon::load(files.gold, files.silver, files.cache_dir));
  Homographs::builtin();  // parsed here, not at the first word
  UserDictionary user;
  if (!files.user_dictionary.empty()) {
    SYRINX_TRY(UserDictionary loaded, UserDictionary::load(files.user_dictionary));
    user = std::move(loaded);
  }
  std::unique_ptr<const Fallback> fallback;
  if (!files.fallback.empty()) {
    SYRINX_TRY(std::unique_ptr<const Fallback> loaded, Fallback::load(files.fallback));
    fallback = std::move(loaded);
  }
  auto impl = std::make_unique<const Impl>(std::move(lexicon), std::move(user), std::move(fallback), files.british);
  return std::shared_ptr<const EnglishG2p>(new EnglishG2p(std::move(impl)));
}

Result<Phonemized> EnglishG2p::phonemize(std::string_view source, size_t source_offset,
                                         std::vector<ReadWord>* read) const {
  text::NormalizeOptions options;
  options.british = impl_->british;
  if (!impl_->user.empty()) options.is_own_word = [this](std::string_view w) { return impl_->user.find(w) != nullptr; };
  options.is_word = [this](std::string_view w) { return impl_->lexicon.contains(w); };
  SYRINX_TRY(text::Normalized normalized, text::normalize(source, options));
  const std::vector<text::Token> tokens = impl_->read_forms(source, options, std::move(normalized.tokens));
  const std::vector<Tag> tags = tag_tokens(tokens);
  std::vector<Spoken> said(tokens.size());
  Following following;
  for (size_t i = tokens.size(); i-- > 0;) said[i] = impl_->say_token(tokens, i, tags[i], following);

  Phonemized out;
  out.dropped = normalized.dropped;
  bool space = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!said[i].phonemes.empty()) {
      if (space && !out.phonemes.empty()) out.phonemes += ' ';
      PhonemizedWord word;
      word.source = {tokens[i].source.begin + source_offset, tokens[i].source.end + source_offset};
      word.kind = said[i].kind;
      word.phonemes.begin = out.phonemes.size();
      append_for_model(out.phonemes, said[i].phonemes);
      word.phonemes.end = out.phonemes.size();
      out.words.push_back(word);
      if (read != nullptr && word.kind != WordKind::kPunctuation) read->push_back(read_word(tokens[i], said[i], word));
      space = false;
    }
    space = space || tokens[i].space_after;
  }
  return out;
}

}  // namespace syrinx::g2p
