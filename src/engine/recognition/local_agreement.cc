#include "engine/recognition/local_agreement.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/upper_case.h"

namespace syrinx {
namespace {

// How far two decodings of the same sound may disagree about a word's time.  What is as near to the beginning of the
// buffer counts as gone: it begins with a whole sample, a little before the time at which it was cut.
constexpr double kJitter = 0.1;
constexpr size_t kLongestOverlap = 5;  // words that a hypothesis may say again behind what is committed

std::u32string folded(std::string_view word) {
  std::u32string letters;
  for (size_t at = 0; at < word.size();) {
    const char32_t c = text::decode(word, at);
    const text::Class kind = text::classify(c);
    if (kind != text::Class::kPunctuation && kind != text::Class::kSpace) letters += text::upper_case(c);
  }
  return letters;
}

// Behind quotation marks and the like; empty where there is none.
std::string_view first_letter(std::string_view word) {
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    const text::Class kind = text::classify(text::decode(word, at));
    if (kind != text::Class::kPunctuation && kind != text::Class::kSpace) return word.substr(begin, at - begin);
  }
  return {};
}

bool same_words(std::span<const TranscriptWord> a, std::span<const TranscriptWord> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TranscriptWord& x, const TranscriptWord& y) { return same_word(x.text, y.text); });
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) { return folded(a) == folded(b); }

void keep_capital(std::string& word, std::string_view other) {
  const std::string_view ours = first_letter(word), theirs = first_letter(other);
  if (ours.empty() || theirs.empty() || ours == theirs) return;
  size_t end_of_ours = 0, end_of_theirs = 0;
  const char32_t capital = text::decode(theirs, end_of_theirs);
  if (text::upper_case(text::decode(ours, end_of_ours)) != std::u32string(1, capital)) return;
  word.replace(static_cast<size_t>(ours.data() - word.data()), ours.size(), theirs);
}

// Words at the head of a hypothesis that are committed already.
size_t LocalAgreement::count_committed(std::span<const TranscriptWord> words) const {
  const size_t known = committed_.size();
  if (words.size() >= known && same_words(words.first(known), committed_)) return known;
  // The model now writes them otherwise: what lies before the committed end counts as said.
  size_t skipped = 0;
  while (skipped < words.size() && words[skipped].start_s < committed_end_s_ - kJitter) ++skipped;
  const auto rest = words.subspan(skipped);
  for (size_t n = std::min({kLongestOverlap, rest.size(), known}); n > 0; --n) {
    if (rest.front().start_s < committed_end_s_ + kJitter && same_words(rest.first(n), std::span(committed_).last(n)))
      return skipped + n;
  }
  return skipped;
}

std::vector<TranscriptWord> LocalAgreement::push(std::span<const TranscriptWord> words,
                                                 std::span<const double> segment_ends_s) {
  const auto fresh = words.subspan(count_committed(words));
  size_t agreed = 0;
  while (agreed < std::min(fresh.size(), unstable_.size()) && same_word(fresh[agreed].text, unstable_[agreed].text))
    ++agreed;
  std::vector<TranscriptWord> now(fresh.begin(), fresh.end());
  if (!begun_ && agreed > 0) {
    TranscriptWord& first = now.front();
    keep_capital(first.text, unstable_.front().text);
    for (TranscriptToken& token : first.timed_tokens) {
      if (first_letter(token.text).empty()) continue;
      keep_capital(token.text, unstable_.front().text);
      break;
    }
  }
  unstable_ = std::move(now);
  segment_ends_s_.assign(segment_ends_s.begin(), segment_ends_s.end());
  return commit(agreed);
}

std::vector<TranscriptWord> LocalAgreement::finish() { return commit(unstable_.size()); }

std::vector<TranscriptWord> LocalAgreement::commit(size_t count) {
  const auto end = unstable_.begin() + static_cast<ptrdiff_t>(count);
  std::vector<TranscriptWord> words(unstable_.begin(), end);
  unstable_.erase(unstable_.begin(), end);
  begun_ |= !words.empty();
  committed_.insert(committed_.end(), words.begin(), words.end());
  for (const TranscriptWord& word : words) committed_end_s_ = std::max(committed_end_s_, word.end_s);
  return words;
}

std::optional<double> LocalAgreement::trim_point(double begin_s, double end_s) const {
  if (end_s - begin_s <= options_.trim_after_s) return std::nullopt;
  std::optional<double> point;
  for (const double segment_end : segment_ends_s_) {
    if (segment_end > begin_s + kJitter && segment_end <= committed_end_s_ + kJitter)
      point = std::max(point.value_or(0), segment_end);
  }
  if (point || end_s - begin_s <= options_.max_buffer_s) return point;
  // No segment came to its end in a whole window: the last committed word, or else all but the last trim_after_s.
  return committed_end_s_ > begin_s + kJitter ? committed_end_s_ : end_s - options_.trim_after_s;
}

std::vector<TranscriptWord> LocalAgreement::trim(double begin_s) {
  size_t cut = 0, gone = 0;
  while (cut < unstable_.size() && unstable_[cut].end_s <= begin_s) ++cut;
  std::vector<TranscriptWord> words = commit(cut);
  while (gone < committed_.size() && committed_[gone].end_s <= begin_s + kJitter) extend_prompt(committed_[gone++]);
  committed_.erase(committed_.begin(), committed_.begin() + static_cast<ptrdiff_t>(gone));
  return words;
}

void LocalAgreement::extend_prompt(const TranscriptWord& word) {
  const size_t before = prompt_.size();
  append_word(prompt_, word);
  prompt_words_.push_back(prompt_.size() - before);
  while (text::count_code_points(prompt_) > options_.prompt_characters) {
    prompt_.erase(0, prompt_words_.front());
    prompt_words_.pop_front();
    if (!prompt_.starts_with(' ')) continue;
    prompt_.erase(0, 1);
    --prompt_words_.front();
  }
}

}  // namespace syrinx
