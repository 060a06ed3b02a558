#include "models/kokoro/pieces.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "models/kokoro/model.h"

namespace syrinx::kokoro {
namespace {

using g2p::Phonemized;
using g2p::PhonemizedWord;
using g2p::WordKind;

// Words [begin, end) of `text` as a text of their own.
Phonemized slice(const Phonemized& text, size_t begin, size_t end) {
  Phonemized out;
  if (begin >= end) return out;
  const size_t first = text.words[begin].phonemes.begin;
  out.phonemes = text.phonemes.substr(first, text.words[end - 1].phonemes.end - first);
  for (size_t i = begin; i < end; ++i) {
    PhonemizedWord word = text.words[i];
    word.phonemes = {word.phonemes.begin - first, word.phonemes.end - first};
    out.words.push_back(word);
  }
  return out;
}

void append(Phonemized& out, const Phonemized& more) {
  if (more.phonemes.empty()) return;
  if (!out.phonemes.empty()) out.phonemes += ' ';
  const size_t offset = out.phonemes.size();
  out.phonemes += more.phonemes;
  for (PhonemizedWord word : more.words) {
    word.phonemes = {word.phonemes.begin + offset, word.phonemes.end + offset};
    out.words.push_back(word);
  }
  out.dropped += more.dropped;
}

std::string_view said(const Phonemized& text, size_t i) {
  const text::Range range = text.words[i].phonemes;
  return std::string_view(text.phonemes).substr(range.begin, range.size());
}

bool is_mark(const Phonemized& text, size_t i, std::initializer_list<std::string_view> marks) {
  return text.words[i].kind == WordKind::kPunctuation &&
         std::find(marks.begin(), marks.end(), said(text, i)) != marks.end();
}

// Ids of words [begin, end), spaces between them included.
size_t ids_of(const Phonemized& text, size_t begin, size_t end) {
  if (begin >= end) return 0;
  const size_t first = text.words[begin].phonemes.begin;
  return text::count_code_points(
      std::string_view(text.phonemes).substr(first, text.words[end - 1].phonemes.end - first));
}

// First word after [begin, ...) that no longer fits into max_ids; begin when not even one does.
size_t fitting(const Phonemized& text, size_t begin, size_t max_ids) {
  size_t end = begin;
  size_t ids = 0;
  size_t from = text.words[begin].phonemes.begin;
  while (end < text.words.size()) {
    const size_t to = text.words[end].phonemes.end;
    ids += text::count_code_points(std::string_view(text.phonemes).substr(from, to - from));
    if (ids > max_ids) break;
    from = to;
    ++end;
  }
  return end;
}

// Behind the last word of [begin, end) that is one of `marks`, with a closing mark after it; begin when there is none.
size_t behind_last(const Phonemized& text, size_t begin, size_t end, std::initializer_list<std::string_view> marks) {
  for (size_t i = end; i-- > begin;) {
    if (!is_mark(text, i, marks)) continue;
    size_t cut = i + 1;
    if (cut < text.words.size() && is_mark(text, cut, {")", "”"})) ++cut;
    if (cut <= end) return cut;
  }
  return begin;
}

// Between words, where the rest is cut into as few parts as max_ids allows, and no single word is left for the last.
size_t even_cut(const Phonemized& text, size_t begin, size_t max_ids) {
  const size_t rest = ids_of(text, begin, text.words.size());
  const size_t parts = (rest + max_ids - 1) / max_ids;
  const size_t each = (rest + parts - 1) / parts;
  return fitting(text, begin, each - 1) + 1;
}

// Where to cut before `end`, the first word that does not fit, by the order of section 8.5.
size_t cut_before(const Phonemized& text, size_t begin, size_t end, size_t max_ids) {
  for (const auto& marks : {std::initializer_list<std::string_view>{"!", ".", "?", "…"}, {":", ";"}, {",", "—"}}) {
    if (const size_t cut = behind_last(text, begin, end, marks); cut > begin) return cut;
  }
  return std::min(end, even_cut(text, begin, max_ids));
}

// One word longer than max_ids (an escape, a run of letters): cut between code points.
void cut_word(const Phonemized& text, size_t index, size_t max_ids, std::vector<Phonemized>& out) {
  std::string_view rest = said(text, index);
  while (!rest.empty()) {
    size_t bytes = 0;
    for (size_t n = 0; n < max_ids && bytes < rest.size(); ++n) text::decode(rest, bytes);
    Phonemized part;
    part.phonemes = rest.substr(0, bytes);
    part.words = {{text.words[index].source, {0, bytes}, text.words[index].kind}};
    out.push_back(std::move(part));
    rest.remove_prefix(bytes);
  }
}

}  // namespace

std::vector<Phonemized> split_for_model(const Phonemized& text, size_t max_ids) {
  SYRINX_CHECK(max_ids > 0);
  std::vector<Phonemized> out;
  for (size_t begin = 0; begin < text.words.size();) {
    const size_t end = fitting(text, begin, max_ids);
    if (end == begin) {
      cut_word(text, begin, max_ids, out);
      ++begin;
      continue;
    }
    const size_t cut = end == text.words.size() ? end : cut_before(text, begin, end, max_ids);
    out.push_back(slice(text, begin, cut));
    begin = cut;
  }
  if (!out.empty()) out.front().dropped = text.dropped;
  return out;
}

PiecePolicy PiecePolicy::at_speed(float speed) {
  PiecePolicy policy;
  const float share = std::min(speed, 1.0f);
  policy.max_ids = std::max(policy.shortest_ids, static_cast<size_t>(share * static_cast<float>(policy.max_ids)));
  policy.packed_ids = std::min(policy.packed_ids, policy.max_ids);
  return policy;
}

size_t PiecePolicy::most_joined() const { return std::min(max_ids + shortest_ids, kMaxIds); }

void PiecePlanner::add(const Phonemized& sentence) {
  for (Phonemized& part : split_for_model(sentence, policy_.max_ids)) waiting_.push_back(std::move(part));
}

// The opening of a sentence longer than `limit`: up to the last clause end that fits, else up to the first one behind
// the limit; nothing where a part would be too short.
std::optional<Phonemized> PiecePlanner::opening(size_t limit) {
  const Phonemized& sentence = waiting_.front();
  if (sentence.id_count() <= limit) return std::nullopt;
  const size_t words = sentence.words.size();
  size_t cut = 0;
  for (size_t i = 0; i < words; ++i) {
    const size_t end = behind_last(sentence, i, i + 1, {"!", ".", "?", "…", ":", ";", ",", "—"});
    if (end == i || ids_of(sentence, 0, end) < policy_.shortest_ids) continue;
    if (ids_of(sentence, end, words) < policy_.shortest_ids) break;
    const bool fits = ids_of(sentence, 0, end) <= limit;
    if (fits || cut == 0) cut = end;
    if (!fits) break;
  }
  if (cut == 0) return std::nullopt;
  Phonemized piece = slice(sentence, 0, cut);
  Phonemized rest = slice(sentence, cut, words);
  if (!piece.speaks() || !rest.speaks()) return std::nullopt;
  rest.dropped = sentence.dropped;
  waiting_.front() = std::move(rest);
  return piece;
}

std::optional<Phonemized> PiecePlanner::next(bool now) {
  if (waiting_.empty()) return std::nullopt;
  // A very short sentence ("Hello.") joins the next one before that is cut.
  while (waiting_.size() > 1 && waiting_.front().id_count() < policy_.shortest_ids &&
         waiting_[0].id_count() + 1 + waiting_[1].id_count() <= policy_.most_joined()) {
    append(waiting_[0], waiting_[1]);
    waiting_.erase(waiting_.begin() + 1);
  }
  const size_t limit = given_ == 0 ? policy_.first_ids : std::max(policy_.first_ids, policy_.growth * last_ids_);
  if (auto piece = opening(limit)) {
    ++given_;
    last_ids_ = piece->id_count();
    return piece;
  }
  // The first two pieces are single sentences: the player has little sound in store.  Later ones are packed.
  const size_t wanted = given_ < 2 ? 0 : policy_.packed_ids;
  Phonemized piece;
  size_t taken = 0;
  for (; taken < waiting_.size(); ++taken) {
    const size_t ids = piece.id_count();
    const size_t joined = (ids == 0 ? 0 : ids + 1) + waiting_[taken].id_count();
    const bool too_short = ids < policy_.shortest_ids || !piece.speaks();
    if (ids > 0 && joined > (too_short ? policy_.most_joined() : std::max(wanted, policy_.shortest_ids))) break;
    append(piece, waiting_[taken]);
  }
  const size_t ids = piece.id_count();
  const bool could_grow = taken == waiting_.size() && (ids < wanted || ids < policy_.shortest_ids || !piece.speaks());
  if (could_grow && !now) return std::nullopt;
  // A short last sentence joins this piece rather than being left alone.
  if (taken + 1 == waiting_.size() && now && waiting_[taken].id_count() < policy_.shortest_ids &&
      ids + 1 + waiting_[taken].id_count() <= policy_.most_joined()) {
    append(piece, waiting_[taken]);
    ++taken;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken));
  if (!piece.speaks()) return waiting_.empty() ? std::nullopt : next(now);
  ++given_;
  last_ids_ = piece.id_count();
  return piece;
}

std::vector<Phonemized> plan_pieces(const std::vector<Phonemized>& sentences, const PiecePolicy& policy) {
  PiecePlanner planner(policy);
  for (const Phonemized& sentence : sentences) planner.add(sentence);
  std::vector<Phonemized> pieces;
  while (auto piece = planner.next(true)) pieces.push_back(std::move(*piece));
  return pieces;
}

}  // namespace syrinx::kokoro
