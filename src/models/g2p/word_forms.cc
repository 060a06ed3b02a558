#include "models/g2p/word_forms.h"

#include <algorithm>
#include <utility>

#include "models/g2p/acronyms.h"
#include "models/g2p/capital_forms.h"
#include "models/g2p/capital_runs.h"
#include "models/g2p/known_words.h"
#include "models/g2p/name_forms.h"
#include "models/g2p/names.h"
#include "models/g2p/small_forms.h"
#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

using text::Token;
using text::TokenKind;

// The parts between hyphens, none of them empty.
std::vector<std::string_view> split_at_hyphens(std::string_view word) {
  std::vector<std::string_view> parts;
  while (!word.empty()) {
    const size_t end = std::min(word.find('-'), word.size());
    if (end > 0) parts.push_back(word.substr(0, end));
    word.remove_prefix(std::min(end + 1, word.size()));
  }
  return parts;
}

bool is_lower(char c) { return text::is_ascii_lower(static_cast<unsigned char>(c)); }

// "U.K." and "'s" of "U.K.'s" are one; the last point may be none of the letters' token.
std::vector<Token> join_possessives(std::string_view source, std::vector<Token> tokens) {
  std::vector<Token> out;
  out.reserve(tokens.size());
  for (Token& token : tokens) {
    bool follows =
        !out.empty() && out.back().kind == TokenKind::kLetters && token.kind == TokenKind::kWord && token.text == "'s";
    if (follows) {
      const size_t end = out.back().source.end;
      follows = token.source.begin == end || (token.source.begin == end + 1 && source[end] == '.');
    }
    if (!follows) {
      out.push_back(std::move(token));
      continue;
    }
    out.back().text += token.text;
    out.back().source.end = token.source.end;
    out.back().space_after = token.space_after;
  }
  return out;
}

class WordForms {
 public:
  explicit WordForms(const WordFormsContext& context)
      : context_(context), known_(context.lexicon, context.british), names_(context), capitals_(context, known_) {}

  std::vector<Token> read(std::vector<Token> tokens) const {
    tokens = split_hyphens(join_possessives(context_.source, std::move(tokens)));
    const std::vector<bool> in_capitals = find_capital_runs(tokens, known_);
    std::vector<Token> out;
    out.reserve(tokens.size());
    for (size_t i = 0; i < tokens.size();) {
      if (!is_plain(tokens[i])) {
        out.push_back(tokens[i++]);
        continue;
      }
      if (const size_t count = names_.read(tokens, i, in_capitals[i], out); count > 0) {
        i += count;
        continue;
      }
      Token token = tokens[i];
      if (!capitals_.read(tokens, i, in_capitals[i], token)) token = names_.read_accents(std::move(token));
      if (token.kind == TokenKind::kWord) {
        read_small_form(std::move(token), context_, known_, out);
      } else {
        out.push_back(std::move(token));
      }
      ++i;
    }
    return out;
  }

 private:
  // A word as the text has it.
  bool is_plain(const Token& token) const {
    return token.kind == TokenKind::kWord && token.rule.empty() && !token.number && !token.stress &&
           !(context_.is_own_word && context_.is_own_word(token.text));
  }

  // Has a part of a compound a reading that the compound's rules do not know?
  bool reads_alone(std::string_view part) const {
    if (is_small_acronym(part, context_.lexicon)) return true;
    if (part.size() < 2 || !text::is_ascii_upper(static_cast<unsigned char>(part[0]))) return false;
    const std::string_view base = cut_ending(part).base;
    const std::string lower = text::ascii_lower(base);
    if (const Acronym* acronym = find_acronym(base))
      return acronym->reading != AcronymReading::kLetters || context_.lexicon.contains(lower);
    return find_name(lower) != nullptr || (is_in_capitals(base) && known_.has(lower, false));
  }

  // "US-made" becomes two words; "ill-disposed" stays one.
  std::vector<Token> split_hyphens(std::vector<Token> tokens) const {
    std::vector<Token> out;
    out.reserve(tokens.size());
    for (Token& token : tokens) {
      const bool is_split =
          is_plain(token) && (token.text.find('-') != std::string::npos ? split(token, out) : split_system(token, out));
      if (!is_split) out.push_back(std::move(token));
    }
    return out;
  }

  bool split(const Token& token, std::vector<Token>& out) const {
    const std::string_view written = context_.source.substr(token.source.begin, token.source.size());
    const std::vector<std::string_view> parts = split_at_hyphens(token.text);
    const std::vector<std::string_view> sources = split_at_hyphens(written);
    if (parts.size() < 2 || parts.size() != sources.size() || find_name(fold_case(written)) != nullptr) return false;
    if (std::none_of(parts.begin(), parts.end(), [this](std::string_view part) { return reads_alone(part); }))
      return false;
    for (size_t k = 0; k < parts.size(); ++k) {
      Token part = token;
      part.text = parts[k];
      part.source.begin = static_cast<size_t>(sources[k].data() - context_.source.data());
      part.source.end = part.source.begin + sources[k].size();
      if (k + 1 < parts.size()) part.space_after = true;
      out.push_back(std::move(part));
    }
    return true;
  }

  // "macOS", "webOS", "swiftUI": two capitals behind a name are spelled.
  bool split_system(const Token& token, std::vector<Token>& out) const {
    const std::string_view word = token.text;
    if (word.size() < 4 || word.size() != token.source.size()) return false;
    const std::string_view head = word.substr(0, word.size() - 2), tail = word.substr(head.size());
    if (!is_in_capitals(tail) || !is_lower(head.back()) || !is_lower(head[head.size() - 2]) ||
        context_.lexicon.contains(word) || find_acronym(word) != nullptr)
      return false;
    Token name = token, letters = token;
    name.text = head;
    name.source.end = letters.source.begin = token.source.begin + head.size();
    name.space_after = true;
    if (head.find_first_of("aeiouyAEIOUY") == std::string_view::npos) name.kind = TokenKind::kLetters;
    letters.text = tail;
    letters.kind = TokenKind::kLetters;
    letters.rule = "acronym";
    out.push_back(std::move(name));
    out.push_back(std::move(letters));
    return true;
  }

  const WordFormsContext& context_;
  KnownWords known_;
  NameForms names_;
  CapitalForms capitals_;
};

}  // namespace

std::vector<Token> read_word_forms(const WordFormsContext& context, std::vector<Token> tokens) {
  return WordForms(context).read(std::move(tokens));
}

}  // namespace syrinx::g2p
