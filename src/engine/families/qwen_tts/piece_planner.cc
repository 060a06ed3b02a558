#include "engine/families/qwen_tts/piece_planner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "text/speech/split.h"
#include "text/unicode.h"

namespace syrinx::qwen_tts {
namespace {

// Bytes of a text whose tokens are counted at once, where a part is looked for: several times a piece.
constexpr size_t kMaxCountedBytes = 4096;

bool can_be_spoken(std::string_view text) {
  for (size_t at = 0; at < text.size();)
    if (is_spoken(text::decode(text, at))) return true;
  return false;
}

// One blank for each run of blanks and control characters, none at the ends.
std::string cleaned(std::string_view text) {
  std::string out;
  bool follows_blank = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = text::decode(text, at);
    if (text::is_space(c) || (text::classify(c) == text::Class::kControl && c < 0xa0)) {
      follows_blank = !out.empty();
      continue;
    }
    if (std::exchange(follows_blank, false)) out += ' ';
    out += text.substr(begin, at - begin);
  }
  return out;
}

// The ends of characters of the text, the first of them above 0.
std::vector<size_t> character_ends(std::string_view text) {
  std::vector<size_t> ends;
  for (size_t at = 0; at < text.size();) {
    text::decode(text, at);
    ends.push_back(at);
  }
  return ends;
}

std::string_view stripped(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_spoken(char32_t c) {
  switch (text::classify(c)) {
    case text::Class::kUpper:
    case text::Class::kLower:
    case text::Class::kOtherLetter:
    case text::Class::kDigit:
    case text::Class::kOtherNumber: return true;
    case text::Class::kMark:
    case text::Class::kPunctuation:
    case text::Class::kSymbol:
    case text::Class::kSpace:
    case text::Class::kControl: break;
  }
  return false;
}

PiecePlanner::PiecePlanner(CountTokens count, size_t max_tokens) : count_(std::move(count)), max_tokens_(max_tokens) {
  SYRINX_CHECK(max_tokens_ >= 1 && max_tokens_ <= kMaxPieceTokens, "{} tokens", max_tokens_);
}

Status PiecePlanner::add(std::string_view sentence, size_t offset) {
  const bool follows_blank = offset > end_;
  end_ = offset + sentence.size();
  const std::string text = cleaned(sentence);
  if (text.empty()) return {};
  if (!can_be_spoken(text)) {
    left_out_ += text::count_code_points(text);
    return {};
  }
  return take(text, follows_blank);
}

Status PiecePlanner::take(std::string_view text, bool follows_blank) {
  if (text.size() > kMaxCountedBytes) return take_in_parts(text, follows_blank);
  SYRINX_TRY(const size_t tokens, count_(text));
  if (tokens > max_tokens_) return take_in_parts(text, follows_blank);
  parts_.push_back({.text = std::string(text), .tokens = tokens, .follows_blank = follows_blank});
  return {};
}

// As many clauses as fit; of one that alone does not fit, as much as does.
Status PiecePlanner::take_in_parts(std::string_view text, bool follows_blank) {
  for (std::string_view rest = text; !rest.empty();) {
    SYRINX_TRY(const size_t fits, fitting_prefix(rest.substr(0, kMaxCountedBytes)));
    size_t cut = fits;
    if (fits < rest.size()) {
      const std::string_view prefix = rest.substr(0, fits);
      const auto clauses = text::split_clauses(prefix);
      if (const size_t blank = prefix.rfind(' '); blank != std::string_view::npos && blank > 0) cut = blank;
      if (clauses.size() > 1) cut = clauses.back().begin;
    }
    const std::string_view part = stripped(rest.substr(0, cut));
    if (can_be_spoken(part)) {
      SYRINX_TRY(const size_t tokens, count_(part));
      parts_.push_back({.text = std::string(part), .tokens = tokens, .follows_blank = follows_blank});
    } else {
      left_out_ += text::count_code_points(part);
    }
    follows_blank = cut < rest.size() && (rest[cut] == ' ' || rest[cut - 1] == ' ');
    rest = rest.substr(cut);
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  }
  return {};
}

// The bytes of the longest beginning of the text that fits, one character at least.
Result<size_t> PiecePlanner::fitting_prefix(std::string_view text) const {
  const std::vector<size_t> ends = character_ends(text);
  size_t least = 1, most = ends.size();
  while (least < most) {
    const size_t middle = (least + most + 1) / 2;
    const std::string_view part = stripped(text.substr(0, ends[middle - 1]));
    SYRINX_TRY(const size_t tokens, part.empty() ? Result<size_t>(0) : count_(part));
    if (tokens <= max_tokens_)
      least = middle;
    else
      most = middle - 1;
  }
  return ends[least - 1];
}

std::optional<std::string> PiecePlanner::next(bool now) {
  size_t count = 0, tokens = 0;
  while (count < parts_.size() && (count == 0 || tokens + parts_[count].tokens <= room()))
    tokens += parts_[count++].tokens;
  const bool is_full = count < parts_.size() || tokens >= room();
  if (count == 0 || (!is_full && !now)) return std::nullopt;
  std::string piece;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && parts_[i].follows_blank) piece += ' ';
    piece += parts_[i].text;
  }
  parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(count));
  is_first_ = false;
  return piece;
}

}  // namespace syrinx::qwen_tts
