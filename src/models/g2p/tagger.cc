#include "models/g2p/tagger.h"

#include <algorithm>
#include <array>

#include "text/unicode.h"

namespace syrinx::g2p {
namespace {

struct ClosedClass {
  Tag tag;
  std::string_view words;  // separated by single spaces, in lower case
};

constexpr ClosedClass kClosed[] = {
    {Tag::kDeterminer, " a an the this these those every each another any some no both either neither all "},
    {Tag::kPreposition,
     " of in on at by for with from into about as than if while though although because since until unless upon over "
     "under between among through during without within against toward towards before after behind beyond near per via "
     "despite above below across along around beside besides beneath throughout that "},
    {Tag::kTo, " to "},
    {Tag::kConjunction, " and or but nor yet "},
    {Tag::kPronoun,
     " i you he she it we they me him us them myself yourself himself herself itself ourselves themselves there "},
    {Tag::kPossessive, " my your his its our their her "},
    {Tag::kModal,
     " can could will would shall should may might must cannot can't couldn't won't wouldn't shan't shouldn't "
     "mightn't mustn't let's "},
    {Tag::kAuxiliary,
     " am are is was were be been being have has had having isn't aren't wasn't weren't haven't hasn't hadn't i've "
     "you've we've they've i'm you're we're they're "},
    {Tag::kPresent, " do does did done doing don't doesn't didn't "},
    {Tag::kAdverb,
     " not never very too also just only then now again still quite rather almost always often here well even much so "
     "more most less least "},
    {Tag::kQuestion, " when where why how who whom what whose which "},
};

bool is_word(const text::Token& token) {
  return token.kind == text::TokenKind::kWord || token.kind == text::TokenKind::kLetters;
}

Tag closed_or_noun(const text::Token& token, bool sentence_start) {
  if (token.kind == text::TokenKind::kLetters && token.text.size() > 1) return Tag::kProperNoun;  // "IT" is no pronoun
  const std::string key = " " + text::ascii_lower(token.text) + " ";
  for (const ClosedClass& closed : kClosed) {
    if (closed.words.find(key) != std::string_view::npos) return closed.tag;
  }
  if (token.number) return Tag::kNumber;
  const bool capital = !token.text.empty() && text::is_ascii_upper(static_cast<unsigned char>(token.text[0]));
  return capital && !sentence_start ? Tag::kProperNoun : Tag::kNoun;
}

bool is_one_of(std::string_view word, std::string_view list) {
  return list.find(" " + text::ascii_lower(word) + " ") != std::string_view::npos;
}

// Tag of an open-class word, judged by the word before it (adverbs between them are stepped over).
Tag by_neighbour(Tag tag, Tag previous, std::string_view previous_word) {
  if (previous == Tag::kTo || previous == Tag::kModal) return Tag::kVerb;
  if (previous == Tag::kPresent) return is_one_of(previous_word, " done doing ") ? tag : Tag::kVerb;
  if (previous == Tag::kAuxiliary) return Tag::kParticiple;
  return tag;
}

// "I live", "she tears": after a subject pronoun a word is a verb, not the noun that is written alike.
bool follows_subject(const std::vector<text::Token>& tokens, size_t i) {
  if (i == 0) return false;
  const bool is_third = tokens[i].text.ends_with('s') && is_one_of(tokens[i - 1].text, " he she it ");
  return is_third || is_one_of(tokens[i - 1].text, " i you we they who ");
}

}  // namespace

std::string_view lexicon_name(Tag tag) {
  switch (tag) {
    case Tag::kPast: return "VBD";
    case Tag::kParticiple: return "VBN";
    case Tag::kPresent: return "VBP";
    case Tag::kDeterminer: return "DT";
    default: return lexicon_class(tag);
  }
}

std::string_view lexicon_class(Tag tag) {
  switch (tag) {
    case Tag::kNoun:
    case Tag::kProperNoun: return "NOUN";
    case Tag::kVerb:
    case Tag::kPast:
    case Tag::kParticiple:
    case Tag::kPresent:
    case Tag::kAuxiliary: return "VERB";
    case Tag::kAdjective: return "ADJ";
    case Tag::kAdverb: return "ADV";
    default: return {};
  }
}

std::vector<Tag> tag_tokens(const std::vector<text::Token>& tokens) {
  std::vector<Tag> tags(tokens.size(), Tag::kPunctuation);
  bool sentence_start = true;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == text::TokenKind::kPunctuation) {
      const std::string& mark = tokens[i].text;
      if (mark == "." || mark == "!" || mark == "?") sentence_start = true;
      continue;
    }
    tags[i] = closed_or_noun(tokens[i], sentence_start);
    sentence_start = false;
  }
  Tag previous = Tag::kPunctuation;
  std::string_view previous_word;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tags[i] == Tag::kNoun && is_word(tokens[i])) {
      tags[i] = by_neighbour(tags[i], previous, previous_word);
      if (tags[i] == Tag::kNoun && follows_subject(tokens, i)) tags[i] = Tag::kVerb;
    }
    if (tags[i] != Tag::kAdverb) {
      previous = tags[i];
      previous_word = tokens[i].text;
    }
  }
  // "that" before a noun points at it; before a pronoun or a verb it joins clauses.
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const bool noun = tags[i + 1] == Tag::kNoun || tags[i + 1] == Tag::kProperNoun || tags[i + 1] == Tag::kAdjective;
    if (noun && is_one_of(tokens[i].text, " that ")) tags[i] = Tag::kDeterminer;
  }
  return tags;
}

}  // namespace syrinx::g2p
