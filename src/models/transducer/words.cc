#include "models/transducer/words.h"

#include <algorithm>

#include "text/unicode.h"

namespace syrinx::transducer {

bool is_closing_mark(const Vocabulary& vocabulary, int32_t label) {
  constexpr std::u32string_view kOther = U"\"'([{\u00A1\u00AB\u00BF\u2018\u201A\u201C\u201E\u2039\u300C\u300E";
  const std::string text = vocabulary.text({&label, 1});
  if (text.empty()) return false;
  size_t end = 0;
  const char32_t first = text::decode(text, end);
  return end == text.size() && text::classify(first) == text::Class::kPunctuation &&
         kOther.find(first) == std::u32string_view::npos;
}

std::vector<TokenTime> token_times(const Vocabulary& vocabulary, HeadKind kind, std::span<const Emission> emissions) {
  std::vector<TokenTime> out;
  out.reserve(emissions.size());
  for (const Emission& emission : emissions) {
    if (vocabulary.is_special(emission.label)) continue;
    TokenTime token{.label = emission.label,
                    .begin = emission.frame,
                    .end = emission.frame + static_cast<int64_t>(emission.duration),
                    .confidence = emission.confidence};
    if (kind == HeadKind::kTdt && !out.empty() && is_closing_mark(vocabulary, token.label))
      token.begin = token.end = out.back().end;
    out.push_back(token);
  }
  return out;
}

std::vector<WordTime> word_times(const Vocabulary& vocabulary, std::span<const TokenTime> tokens) {
  std::vector<WordTime> out;
  std::vector<int32_t> labels;  // of the word that is being read
  bool is_spelled = false;      // they have text
  size_t first = 0;
  const auto finish = [&](size_t end) {
    WordTime word{.text = vocabulary.text(labels)};
    labels.clear();
    is_spelled = false;
    if (word.text.empty()) return;
    word.begin = tokens[first].begin;
    word.end = tokens[end - 1].end;
    word.confidence = tokens[first].confidence;
    word.first = first;
    word.count = end - first;
    for (size_t i = first; i < end; ++i) word.confidence = std::min(word.confidence, tokens[i].confidence);
    out.push_back(std::move(word));
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t label = tokens[i].label;
    const bool mark = is_closing_mark(vocabulary, label);
    if (vocabulary.begins_word(label) && !mark) finish(i);
    if (vocabulary.token(label).text == " ") continue;  // it stands between words and belongs to none
    is_spelled = is_spelled || (mark && !vocabulary.text(labels).empty());
    if (mark && !is_spelled && !out.empty()) {  // a blank before it belongs to no word
      labels.clear();
      out.back().text += vocabulary.text({&label, 1});
      out.back().end = tokens[i].end;
      out.back().confidence = std::min(out.back().confidence, tokens[i].confidence);
      out.back().count = i + 1 - out.back().first;
      continue;
    }
    if (labels.empty()) first = i;
    labels.push_back(label);
  }
  finish(tokens.size());
  return out;
}

std::vector<std::string> token_texts(const Vocabulary& vocabulary, std::span<const TokenTime> tokens) {
  std::vector<std::string> out;
  constexpr size_t kMostBytes = 4;  // of a character; what is longer spells none
  std::vector<int32_t> bytes;       // of a character that has begun
  for (const TokenTime& token : tokens) {
    const bool is_byte = vocabulary.token(token.label).byte >= 0;
    if (!is_byte) bytes.clear();
    bytes.push_back(token.label);
    out.push_back(vocabulary.text(bytes));
    if (!is_byte || !out.back().empty()) bytes.clear();
    if (bytes.size() == kMostBytes) bytes.erase(bytes.begin());
  }
  return out;
}

std::string join_words(std::span<const WordTime> words) {
  std::string out;
  for (const WordTime& word : words) out += (out.empty() ? "" : " ") + word.text;
  return out;
}

}  // namespace syrinx::transducer
