#include "engine/families/transducer/transducer_transcript.h"

#include <algorithm>

namespace syrinx {
namespace {

using transducer::TokenTime;
using transducer::WordTime;

// Other marks, as a dash or a per cent sign, belong to the words that they stand beside.
bool divides_sentences(std::string_view text) {
  constexpr std::string_view kMarks[] = {".",      ",",      "!",      "?",      ":",      ";",      "\u2026", "\u3001",
                                         "\u3002", "\uFF01", "\uFF0C", "\uFF0E", "\uFF1A", "\uFF1B", "\uFF1F", "\uFF61",
                                         "\u060C", "\u061B", "\u061F", "\u06D4", "\u0964", "\u0965"};
  return std::ranges::find(kMarks, text) != std::end(kMarks);
}

std::vector<TranscriptToken> timed_tokens(std::span<const TokenTime> tokens, const TranscriptRules& rules) {
  const std::vector<std::string> texts = transducer::token_texts(*rules.tokens, tokens);
  std::vector<TranscriptToken> out;
  for (size_t i = 0; i < tokens.size(); ++i)
    out.push_back({.id = tokens[i].label,
                   .text = texts[i],
                   .start_s = rules.offset_s + static_cast<double>(tokens[i].begin) * rules.frame_s,
                   .end_s = rules.offset_s + static_cast<double>(tokens[i].end) * rules.frame_s,
                   .confidence = std::clamp(tokens[i].confidence, 0.0f, 1.0f)});
  return out;
}

}  // namespace

std::span<const TokenTime> behind_marks(const transducer::Vocabulary& vocabulary, std::span<const TokenTime> tokens) {
  const auto text = [&](size_t i) { return vocabulary.text({&tokens[i].label, 1}); };
  size_t marks = 0;
  while (marks < tokens.size() && divides_sentences(text(marks))) ++marks;
  // ".5" is a number.
  if (marks > 0 && marks < tokens.size() && !vocabulary.begins_word(tokens[marks].label)) {
    const std::string next = text(marks);
    if (!next.empty() && next[0] >= '0' && next[0] <= '9') --marks;
  }
  return tokens.subspan(marks);
}

std::vector<PieceTimes::Word> piece_words(std::span<const WordTime> words, double frame_s) {
  std::vector<PieceTimes::Word> out;
  for (const WordTime& word : words)
    out.push_back({static_cast<double>(word.begin) * frame_s, static_cast<double>(word.end) * frame_s,
                   out.empty() || ends_sentence(words[out.size() - 1].text)});
  return out;
}

TranscriptSegment transcript_segment(std::span<const TokenTime> tokens, std::span<const WordTime> words,
                                     const TranscriptRules& rules) {
  TranscriptSegment segment;
  if (words.empty()) return segment;
  const auto seconds = [&](int64_t frame) { return rules.offset_s + static_cast<double>(frame) * rules.frame_s; };
  segment.text = transducer::join_words(words);
  segment.start_s = seconds(words.front().begin);
  segment.end_s = seconds(words.back().end);
  double sum = 0;
  for (const WordTime& word : words) {
    for (const TokenTime& token : tokens.subspan(word.first, word.count)) {
      segment.tokens.push_back(token.label);
      sum += token.confidence;
    }
    if (!rules.words) continue;
    segment.words.push_back({.text = word.text,
                             .start_s = seconds(word.begin),
                             .end_s = seconds(word.end),
                             .confidence = std::clamp(word.confidence, 0.0f, 1.0f)});
    if (rules.tokens != nullptr)
      segment.words.back().timed_tokens = timed_tokens(tokens.subspan(word.first, word.count), rules);
  }
  segment.confidence = std::clamp(static_cast<float>(sum / static_cast<double>(segment.tokens.size())), 0.0f, 1.0f);
  return segment;
}

std::vector<TranscriptSegment> transcript_segments(std::span<const TokenTime> tokens, std::span<const WordTime> words,
                                                   const TranscriptRules& rules) {
  std::vector<TranscriptSegment> out;
  const auto follows_pause = [&](size_t i) { return i < rules.follow_pauses.size() && rules.follow_pauses[i]; };
  for (size_t first = 0; first < words.size();) {
    size_t end = first + 1;
    while (end < words.size() && !ends_sentence(words[end - 1].text) && !follows_pause(end) &&
           static_cast<double>(words[end].begin - words[end - 1].end) * rules.frame_s <= rules.gap_s)
      ++end;
    out.push_back(transcript_segment(tokens, words.subspan(first, end - first), rules));
    first = end;
  }
  return out;
}

}  // namespace syrinx
