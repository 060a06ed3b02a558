#include "models/whisper/words.h"

#include <algorithm>
#include <cmath>

#include "text/unicode.h"

namespace syrinx::whisper {
namespace {

constexpr std::string_view kAsciiPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
constexpr std::string_view kOpening = "\"'“¿([{-";
constexpr std::string_view kClosing = "\"'.。,，!！?？:：”)]}、";
constexpr std::string_view kSentenceEnds = ".。!！?？";

// As Python's `part in whole`.
bool within(std::string_view part, std::string_view whole) { return whole.find(part) != std::string_view::npos; }

std::u32string characters(std::string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) out += text::decode(text, i);
  return out;
}

// As Python's strip(), to which the four information separators are white space too.
bool is_white(char32_t c) { return text::is_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string_view strip(std::string_view text) {
  size_t begin = text.size(), end = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t at = i;
    if (is_white(text::decode(text, i))) continue;
    begin = std::min(begin, at);
    end = i;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

// The shortest runs of tokens whose bytes are whole characters, or malformed in the whole text too.  What is left at
// the end is a run as well (the maker drops it).
std::vector<Word> split_characters(const text::ByteBpe& bpe, std::span<const int32_t> ids) {
  const std::u32string full = characters(bpe.decode(ids));
  std::vector<Word> words;
  size_t begin = 0, offset = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::span<const int32_t> run = ids.subspan(begin, i + 1 - begin);
    std::string spelt = bpe.decode(run);
    const std::u32string decoded = characters(spelt);
    const size_t malformed = decoded.find(U'\uFFFD');
    if (malformed != std::u32string::npos &&
        (offset + malformed >= full.size() || full[offset + malformed] != U'\uFFFD'))
      continue;
    words.push_back({.text = std::move(spelt), .tokens = {run.begin(), run.end()}});
    offset += decoded.size();
    begin = i + 1;
  }
  if (begin < ids.size()) {
    const std::span<const int32_t> rest = ids.subspan(begin);
    words.push_back({.text = bpe.decode(rest), .tokens = {rest.begin(), rest.end()}});
  }
  return words;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// `from` becomes the first, or the last, tokens of `to`.
void move_tokens(Word& from, Word& to, bool in_front) {
  to.tokens.insert(in_front ? to.tokens.begin() : to.tokens.end(), from.tokens.begin(), from.tokens.end());
  to.token_times.insert(in_front ? to.token_times.begin() : to.token_times.end(), from.token_times.begin(),
                        from.token_times.end());
  from.tokens.clear();
  from.token_times.clear();
}

double hundredths(double seconds) { return std::nearbyint(seconds * 100) / 100; }

// Words at the ends of sentences swallow the pause there.
void shorten_at_sentence_ends(std::vector<Word>& words, double longest) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].end_s - words[i].start_s <= longest) continue;
    if (within(words[i].text, kSentenceEnds))
      words[i].end_s = words[i].start_s + longest;
    else if (within(words[i - 1].text, kSentenceEnds))
      words[i].start_s = words[i].end_s - longest;
  }
}

// The first two words after a pause swallow it too.
void shorten_after_pause(std::vector<Word>& words, double longest) {
  const bool two = words.size() > 1;
  const bool first_long = words[0].end_s - words[0].start_s > longest;
  if (!first_long && !(two && words[1].end_s - words[0].start_s > longest * 2)) return;
  if (two && words[1].end_s - words[1].start_s > longest)
    words[0].end_s = words[1].start_s = std::max(words[1].end_s / 2, words[1].end_s - longest);
  words[0].start_s = std::max(0.0, words[0].end_s - longest);
}

// Where the words stray more than half a second from the segment's own times, those win.
void agree_on_ends(Segment& segment, double median_s) {
  Word &first = segment.words.front(), &last = segment.words.back();
  if (segment.start_s < first.end_s && segment.start_s - 0.5 > first.start_s)
    first.start_s = std::max(0.0, std::min(first.end_s - median_s, segment.start_s));
  else
    segment.start_s = first.start_s;
  if (segment.end_s > last.start_s && segment.end_s + 0.5 < last.end_s)
    last.end_s = std::max(last.start_s + median_s, segment.end_s);
  else
    segment.end_s = last.end_s;
}

void keep_tokens_within(Word& word) {
  const double end_s = std::max(word.start_s, word.end_s);
  for (TokenTime& token : word.token_times) {
    token.start_s = std::clamp(token.start_s, word.start_s, end_s);
    token.end_s = std::clamp(token.end_s, word.start_s, end_s);
  }
}

}  // namespace

std::vector<Word> split_words(const text::ByteBpe& bpe, std::span<const int32_t> ids, std::string_view language) {
  std::vector<Word> parts = split_characters(bpe, ids);
  for (const std::string_view unspaced : {"zh", "ja", "th", "lo", "my", "yue"})
    if (language == unspaced) return parts;
  std::vector<Word> words;
  for (Word& part : parts) {
    if (words.empty() || part.text.starts_with(' ') || within(strip(part.text), kAsciiPunctuation)) {
      words.push_back(std::move(part));
      continue;
    }
    words.back().text += part.text;
    words.back().tokens.insert(words.back().tokens.end(), part.tokens.begin(), part.tokens.end());
  }
  return words;
}

void merge_punctuation(std::vector<Word>& words) {
  for (size_t i = words.size() < 2 ? 0 : words.size() - 1, following = i; i-- > 0;) {
    Word& sign = words[i];
    if (!sign.text.starts_with(' ') || !within(strip(sign.text), kOpening)) {
      following = i;
      continue;
    }
    Word& word = words[following];
    word.text = sign.text + word.text;
    sign.text.clear();
    move_tokens(sign, word, true);
  }
  for (size_t i = 1, previous = 0; i < words.size(); ++i) {
    Word& sign = words[i];
    if (words[previous].text.ends_with(' ') || !within(sign.text, kClosing)) {
      previous = i;
      continue;
    }
    Word& word = words[previous];
    word.text += sign.text;
    sign.text.clear();
    move_tokens(sign, word, false);
  }
}

void place_words(std::vector<Word> words, const Tokens& tokens, double offset_s, std::span<Segment> segments,
                 double last_speech_s) {
  std::vector<double> durations;
  for (const Word& word : words)
    if (word.end_s != word.start_s) durations.push_back(word.end_s - word.start_s);
  const double median_s = std::min(0.7, median(durations));
  const double longest = 2 * median_s;
  if (!durations.empty()) shorten_at_sentence_ends(words, longest);
  merge_punctuation(words);

  size_t next = 0;
  for (Segment& segment : segments) {
    const auto wanted =
        static_cast<size_t>(std::ranges::count_if(segment.tokens, [&](int32_t id) { return tokens.is_text(id); }));
    for (size_t placed = 0; next < words.size() && placed < wanted; ++next) {
      placed += words[next].tokens.size();
      if (words[next].text.empty()) continue;
      Word word = std::move(words[next]);
      word.start_s = hundredths(offset_s + word.start_s);
      word.end_s = hundredths(offset_s + word.end_s);
      for (TokenTime& token : word.token_times) {
        token.start_s = hundredths(offset_s + token.start_s);
        token.end_s = hundredths(offset_s + token.end_s);
      }
      segment.words.push_back(std::move(word));
    }
    if (segment.words.empty()) continue;
    if (segment.words[0].end_s - last_speech_s > median_s * 4) shorten_after_pause(segment.words, longest);
    agree_on_ends(segment, median_s);
    for (Word& word : segment.words) keep_tokens_within(word);
    last_speech_s = segment.end_s;
  }
}

}  // namespace syrinx::whisper
