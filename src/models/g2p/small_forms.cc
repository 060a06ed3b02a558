#include "models/g2p/small_forms.h"

#include <optional>

#include "models/g2p/word_rules.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

using text::Token;
using text::TokenKind;

struct Clitic {
  std::string_view written;
  PhonemesView phonemes;
};
constexpr Clitic kClitics[] = {
    {"'ve", U"əv"}, {"'ll", U"ᵊl"}, {"'re", U"əɹ"}, {"'d", U"d"}, {"'m", U"əm"}, {"n't", U"ᵊnt"},
};
constexpr float kLengthened = 2.0f;  // the stress of a lengthened word

// Bytes of the source before its last apostrophe; nothing where it has none.
std::optional<size_t> last_apostrophe(std::string_view source) {
  for (const std::string_view mark : {"'", "’", "ʼ"}) {
    if (const size_t at = source.rfind(mark); at != std::string_view::npos) return at;
  }
  return std::nullopt;
}

bool is_vowel_end(PhonemesView phonemes) { return !phonemes.empty() && is_vowel(phonemes.back()); }

// "I'd've": a word and "have".
bool split_have(Token& token, const WordFormsContext& context, std::vector<Token>& out) {
  const std::string lower = text::ascii_lower(token.text);
  const size_t size = lower.size();
  if (!lower.ends_with("'ve") || lower.find('\'') + 3 >= size || context.lexicon.gold(lower)) return false;
  const std::string_view source = context.source.substr(token.source.begin, token.source.size());
  const size_t cut = last_apostrophe(source).value_or(source.size());
  Token have = token;
  have.kind = TokenKind::kPhonemes;
  have.text = "have";
  have.phonemes = "əv";
  have.rule = "contraction";
  token.text.resize(size - 3);
  token.space_after = true;
  if (cut < source.size()) {
    have.source.begin += cut;
    token.source.end = have.source.begin;
  }
  out.push_back(std::move(have));
  return true;
}

// "that'll": a known word and the sounds of the ending.
void say_clitic(Token& token, const WordFormsContext& context) {
  const std::string lower = text::ascii_lower(token.text);
  if (lower.find('\'') == std::string::npos || context.lexicon.contains(lower)) return;
  const WordRules rules(context.lexicon, context.british);
  for (const Clitic& clitic : kClitics) {
    if (!lower.ends_with(clitic.written) || lower.size() < clitic.written.size() + 2) continue;
    const auto stem = rules.say(lower.substr(0, lower.size() - clitic.written.size()), Tag::kNoun, {});
    if (!stem || stem->rule == SoundRule::kSpelled || stem->phonemes.empty()) return;
    Phonemes said = stem->phonemes;
    if (clitic.written == "'d") {
      said += said.back() == U't' || said.back() == U'd' ? U"ɪd" : is_vowel_end(said) ? U"d" : U"əd";
    } else if (clitic.written == "'ll" && is_vowel_end(said)) {
      said += U"l";
    } else {
      said += clitic.phonemes;
    }
    token.kind = TokenKind::kPhonemes;
    token.phonemes = to_utf8(said);
    token.rule = "contraction";
    return;
  }
}

bool is_letter_with_s(std::string_view word) {
  return word.size() == 3 && word.ends_with("'s") && text::is_ascii_letter(static_cast<unsigned char>(word[0]));
}

}  // namespace

void read_small_form(Token token, const WordFormsContext& context, const KnownWords& known, std::vector<Token>& out) {
  if (is_letter_with_s(token.text)) {
    token.kind = TokenKind::kLetters;
    token.rule = "letter";
    out.push_back(std::move(token));
    return;
  }
  std::vector<Token> tail;
  split_have(token, context, tail);
  const std::string lower = text::ascii_lower(token.text);
  if (!context.lexicon.contains(lower) && !is_in_capitals(token.text)) {
    if (std::string word = known.shortened(lower); !word.empty()) {
      token.text = std::move(word);
      token.rule = "lengthened";
      token.stress = kLengthened;
    }
  }
  say_clitic(token, context);
  out.push_back(std::move(token));
  for (Token& part : tail) out.push_back(std::move(part));
}

}  // namespace syrinx::g2p
