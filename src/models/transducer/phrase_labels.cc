#include "models/transducer/phrase_labels.h"

#include <limits>

#include "base/in_quotes.h"
#include "text/unicode.h"

namespace syrinx::transducer {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

// The words with `space` in front of each, but for the first where words are separated only.
std::string marked(std::string_view phrase, std::string_view space, bool in_front) {
  std::string out;
  bool pending = in_front;
  for (const char c : phrase) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      pending = pending || !out.empty();
      continue;
    }
    if (pending) out += space;
    pending = false;
    out += c;
  }
  return out;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    text::decode(text, end);
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

// From characters on, the adjacent pair whose joint piece scores highest becomes one, the first of equal ones, until
// there is none.  Parts lie behind each other in one text, so joining two is a longer view.
std::vector<std::string_view> merged(const Vocabulary& vocabulary, std::vector<std::string_view> parts) {
  while (parts.size() > 1) {
    float best = -std::numeric_limits<float>::infinity();
    size_t at = parts.size();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string_view pair(parts[i].data(), parts[i].size() + parts[i + 1].size());
      const int32_t id = vocabulary.find(pair);
      if (id < 0 || vocabulary.is_special(id) || vocabulary.token(id).score <= best) continue;
      best = vocabulary.token(id).score;
      at = i;
    }
    if (at == parts.size()) break;
    parts[at] = {parts[at].data(), parts[at].size() + parts[at + 1].size()};
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
  return parts;
}

// The fewest labels that spell the text; the longest first of equal numbers.  Nothing where there are none.
std::vector<std::string_view> fewest(const Vocabulary& vocabulary, std::string_view text) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  std::vector<size_t> count(text.size() + 1, kNone), length(text.size() + 1, 0);  // from each place to the end
  count[text.size()] = 0;
  for (size_t at = text.size(); at-- > 0;) {
    for (size_t size = text.size() - at; size > 0; --size) {
      if (count[at + size] == kNone || count[at + size] + 1 >= count[at]) continue;
      const int32_t id = vocabulary.find(text.substr(at, size));
      if (id < 0 || vocabulary.is_special(id)) continue;
      count[at] = count[at + size] + 1;
      length[at] = size;
    }
  }
  std::vector<std::string_view> out;
  if (count[0] == kNone) return out;
  for (size_t at = 0; at < text.size(); at += length[at]) out.push_back(text.substr(at, length[at]));
  return out;
}

}  // namespace

Result<std::vector<int32_t>> phrase_labels(const Vocabulary& vocabulary, std::string_view phrase) {
  if (phrase.size() > kMaxPhraseBytes)
    return fail(Code::kLimitExceeded, "a phrase to favour has {} bytes; {} are the limit", phrase.size(),
                kMaxPhraseBytes);
  if (text::find_invalid(phrase))
    return fail(Code::kInvalidArgument, "a phrase to favour is not valid UTF-8: {}", in_quotes(phrase));
  const bool blanks = vocabulary.find(" ") >= 0;  // a character model separates words by a label of its own
  const std::string text = marked(phrase, blanks ? std::string_view(" ") : kSpace, !blanks);
  if (text.empty()) return fail(Code::kInvalidArgument, "a phrase to favour has no words");
  const std::vector<std::string_view> parts =
      vocabulary.is_bpe() ? merged(vocabulary, characters(text)) : fewest(vocabulary, text);
  std::vector<int32_t> labels;
  for (const std::string_view part : parts) {
    const int32_t id = vocabulary.find(part);
    if (id >= 0 && !vocabulary.is_special(id)) labels.push_back(id);
  }
  if (parts.empty() || labels.size() != parts.size())
    return fail(Code::kInvalidArgument, "the phrase {} has characters that this model never writes", in_quotes(phrase));
  return labels;
}

}  // namespace syrinx::transducer
