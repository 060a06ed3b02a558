#include "text/tokens/unigram_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/in_quotes.h"
#include "text/unicode.h"

namespace syrinx::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";    // U+2581
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr double kUnknownPenalty = 10;                     // below the worst piece's score

size_t character_bytes(std::string_view text, size_t at) {
  size_t end = at;
  decode(text, end);
  return end - at;
}

tl::unexpected<Error> grows_too_long() {
  return fail(Code::kLimitExceeded, "the text grows beyond {} bytes when the tokenizer's rules are applied",
              4 * UnigramTokenizer::kMaxTextBytes);
}

}  // namespace

int spelt_byte(std::string_view piece) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
  if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) return -1;
  const int high = digit(piece[3]);
  const int low = digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Result<UnigramTokenizer> UnigramTokenizer::make(UnigramModel model, const std::string& name) {
  UnigramTokenizer tokenizer(std::move(model));
  SYRINX_TRY_VOID(tokenizer.index_pieces(name));
  SYRINX_TRY_VOID(tokenizer.build_tree(name));
  return tokenizer;
}

// Checks every piece, and finds the unknown one, those of bytes, and the lowest score.
Status UnigramTokenizer::index_pieces(const std::string& name) {
  const std::vector<Piece>& pieces = model_.pieces;
  if (pieces.size() > kMaxPieces)
    return fail(Code::kLimitExceeded, "'{}' has {} pieces, the limit is {}", name, pieces.size(), kMaxPieces);
  byte_ids_.assign(256, -1);
  bytes_.assign(pieces.size(), -1);
  double lowest = std::numeric_limits<double>::max();
  for (size_t id = 0; id < pieces.size(); ++id) {
    const Piece& piece = pieces[id];
    if (piece.text.empty() || find_invalid(piece.text))
      return fail(Code::kDataLoss, "'{}': piece {} is empty or not UTF-8", name, id);
    if (piece.text.size() > kMaxPieceBytes)
      return fail(Code::kLimitExceeded, "'{}': piece {} has {} bytes, the limit is {}", name, id, piece.text.size(),
                  kMaxPieceBytes);
    if (!std::isfinite(piece.score))
      return fail(Code::kDataLoss, "'{}': the score of piece {} is not a finite number", name, id);
    if (piece.kind == Piece::kNormal || model_.form == TokenizerForm::kJson) lowest = std::min(lowest, piece.score);
    if (piece.kind == Piece::kUnknown) {
      if (unknown_id_ >= 0)
        return fail(Code::kDataLoss, "'{}': pieces {} and {} are both 'unknown'", name, unknown_id_, id);
      unknown_id_ = static_cast<int32_t>(id);
    }
    if (piece.kind == Piece::kByte) {
      const int byte = spelt_byte(piece.text);
      if (byte < 0 || byte_ids_[static_cast<size_t>(byte)] >= 0)
        return fail(Code::kDataLoss, "'{}': byte piece {} is misspelt or stands twice", name, id);
      byte_ids_[static_cast<size_t>(byte)] = static_cast<int32_t>(id);
      bytes_[id] = static_cast<int16_t>(byte);
    }
  }
  if (unknown_id_ < 0) return fail(Code::kDataLoss, "'{}' has no piece for what is unknown", name);
  if (model_.unknown_surface.size() > kMaxPieceBytes || find_invalid(model_.unknown_surface))
    return fail(Code::kDataLoss, "'{}': what stands for unknown characters is too long or not UTF-8", name);
  if (model_.byte_fallback && std::find(byte_ids_.begin(), byte_ids_.end(), -1) != byte_ids_.end())
    return fail(Code::kDataLoss, "'{}' falls back to bytes, but lacks some of the 256 byte pieces", name);
  unknown_score_ = (lowest == std::numeric_limits<double>::max() ? 0 : lowest) - kUnknownPenalty;
  if (model_.form == TokenizerForm::kSentencePiece) unknown_score_ = static_cast<float>(unknown_score_);
  return {};
}

// Breadth first over the sorted pieces: a node stands for the range of those that begin with its bytes.
Status UnigramTokenizer::build_tree(const std::string& name) {
  const std::vector<Piece>& pieces = model_.pieces;
  std::vector<int32_t> sorted;
  for (size_t id = 0; id < pieces.size(); ++id)
    if (pieces[id].matched) sorted.push_back(static_cast<int32_t>(id));
  const auto text = [&](size_t i) -> const std::string& { return pieces[static_cast<size_t>(sorted[i])].text; };
  std::sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    return pieces[static_cast<size_t>(a)].text < pieces[static_cast<size_t>(b)].text;
  });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (text(i - 1) == text(i))
      return fail(Code::kDataLoss, "'{}': the piece {} stands twice", name, in_quotes(text(i)));

  struct Span {
    uint32_t begin, end, depth;
  };
  std::vector<Span> spans = {{0, static_cast<uint32_t>(sorted.size()), 0}};
  nodes_.assign(1, Node{});
  for (size_t n = 0; n < nodes_.size(); ++n) {
    Span span = spans[n];
    if (span.begin < span.end && text(span.begin).size() == span.depth) nodes_[n].id = sorted[span.begin++];
    nodes_[n].first_child = static_cast<uint32_t>(nodes_.size());
    while (span.begin < span.end) {
      const char label = text(span.begin)[span.depth];
      uint32_t end = span.begin;
      while (end < span.end && text(end)[span.depth] == label) ++end;
      if (nodes_.size() == kMaxNodes)
        return fail(Code::kLimitExceeded, "'{}': the tree of its pieces has more than {} nodes", name, kMaxNodes);
      spans.push_back({span.begin, end, span.depth + 1});
      nodes_.push_back(Node{.label = static_cast<uint8_t>(label)});
      ++nodes_[n].children;
      span.begin = end;
    }
  }
  return {};
}

const UnigramTokenizer::Node* UnigramTokenizer::child(const Node& node, uint8_t label) const {
  const Node* const begin = nodes_.data() + node.first_child;
  const Node* const end = begin + node.children;
  const Node* const found = std::lower_bound(begin, end, label, [](const Node& n, uint8_t l) { return n.label < l; });
  return found != end && found->label == label ? found : nullptr;
}

// The character map as Hugging Face's library applies it (spm_precompiled): the shortest rule that a grapheme of up to
// five bytes begins with replaces all of it; failing that, each character is looked up by itself.
Result<std::string> UnigramTokenizer::map_graphemes(std::string_view text) const {
  constexpr size_t kMaxWholeBytes = 5;
  std::string out;
  const auto append = [&](std::string_view part) {
    const CharacterMap::Match match = model_.map.shortest(part);
    out += match.size > 0 ? match.replacement : part;
  };
  int state = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    for (char32_t before = text::decode(text, end); end < text.size();) {
      size_t next = end;
      const char32_t after = text::decode(text, next);
      if (ends_grapheme(before, after, state)) break;
      before = after;
      end = next;
    }
    const std::string_view grapheme = text.substr(begin, end - begin);
    if (grapheme.size() > kMaxWholeBytes || model_.map.shortest(grapheme).size == 0) {
      for (size_t at = 0; at < grapheme.size();) {
        const size_t size = character_bytes(grapheme, at);
        append(grapheme.substr(at, size));
        at += size;
      }
    } else {
      append(grapheme);
    }
    begin = end;
    if (out.size() > 4 * kMaxTextBytes) return grows_too_long();
  }
  return out;
}

// The text that pieces are matched with: rules applied, a space before the text, spaces squeezed and marked.
Result<std::string> UnigramTokenizer::normalize(std::string_view text) const {
  const std::string_view space = model_.escape_spaces ? kSpaceMark : " ";
  std::string out;
  bool after_space = model_.squeeze_spaces;  // then spaces are dropped, at the beginning too
  bool begun = false;
  const bool by_graphemes = model_.form == TokenizerForm::kJson && !model_.map.empty();
  std::string mapped;
  if (by_graphemes) {
    SYRINX_TRY(mapped, map_graphemes(text));
    text = mapped;
  }
  for (size_t at = 0; at < text.size();) {
    CharacterMap::Match match = by_graphemes ? CharacterMap::Match() : model_.map.longest(text.substr(at));
    if (match.size == 0) {
      match.size = character_bytes(text, at);
      match.replacement = text.substr(at, match.size);
    }
    at += match.size;
    if (!begun && model_.squeeze_spaces && match.replacement == " ") continue;
    if (!begun && model_.dummy_prefix) out += space;
    begun = true;
    std::string_view rest = match.replacement;
    while (after_space && rest.starts_with(' ')) rest.remove_prefix(1);
    for (const char c : rest) {
      if (c == ' ')
        out += space;
      else
        out += c;
    }
    if (!rest.empty()) after_space = model_.squeeze_spaces && rest.ends_with(' ');
    if (out.size() > 4 * kMaxTextBytes) return grows_too_long();  // a text of spaces becomes three times as long
  }
  while (model_.squeeze_spaces && out.ends_with(space)) out.resize(out.size() - space.size());
  return out;
}

Result<std::vector<int32_t>> UnigramTokenizer::encode(std::string_view text) const {
  if (text.size() > kMaxTextBytes)
    return fail(Code::kLimitExceeded, "the text has {} bytes, the limit is {}: give it in parts", text.size(),
                kMaxTextBytes);
  if (const auto invalid = find_invalid(text))
    return fail(Code::kInvalidArgument, "the text is not valid UTF-8 at byte {}", *invalid);
  SYRINX_TRY(const std::string normalized, normalize(text));
  return best_path(normalized);
}

// Viterbi: the best way to every character's end, from those of all pieces that end there.
std::vector<int32_t> UnigramTokenizer::best_path(std::string_view text) const {
  struct Best {
    double score = 0;
    uint32_t begin = 0;
    int32_t id = -1;  // -1: not reached
  };
  const bool single = model_.form == TokenizerForm::kSentencePiece;
  const auto rounded = [&](double score) { return single ? static_cast<double>(static_cast<float>(score)) : score; };
  std::vector<Best> best(text.size() + 1);
  // sentencepiece compares a sum in f64 with what it has stored in f32; ties fall as there.
  const auto offer = [&](size_t begin, size_t end, int32_t id, double score) {
    if (best[end].id < 0 || score > best[end].score) best[end] = {rounded(score), static_cast<uint32_t>(begin), id};
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t character_end = begin + character_bytes(text, begin);
    bool covered = false;
    const Node* node = nodes_.data();
    for (size_t end = begin; end < text.size();) {
      node = child(*node, static_cast<uint8_t>(text[end]));
      if (node == nullptr) break;
      ++end;
      if (node->id < 0) continue;
      covered |= end == character_end;
      offer(begin, end, node->id, best[begin].score + model_.pieces[static_cast<size_t>(node->id)].score);
    }
    if (!covered) offer(begin, character_end, unknown_id_, rounded(best[begin].score + unknown_score_));
    begin = character_end;
  }
  // Backwards over the path; a run of unknown characters is one step.
  struct Step {
    size_t begin, end;
    int32_t id;
    bool unknown;
  };
  std::vector<Step> steps;
  for (size_t end = text.size(); end > 0; end = best[end].begin) {
    const size_t begin = best[end].begin;
    const bool spelt = text.substr(begin, end - begin) == model_.pieces[static_cast<size_t>(best[end].id)].text;
    const bool unknown = best[end].id == unknown_id_ && !spelt;
    if (unknown && !steps.empty() && steps.back().unknown)
      steps.back().begin = begin;
    else
      steps.push_back({begin, end, best[end].id, unknown});
  }
  std::vector<int32_t> ids;
  ids.reserve(steps.size());
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->unknown)
      append_unknown(text.substr(step->begin, step->end - step->begin), ids);
    else
      ids.push_back(step->id);
  }
  return ids;
}

void UnigramTokenizer::append_unknown(std::string_view characters, std::vector<int32_t>& ids) const {
  if (!model_.byte_fallback) {
    ids.push_back(unknown_id_);
    return;
  }
  for (const char c : characters) ids.push_back(byte_ids_[static_cast<uint8_t>(c)]);
}

int UnigramTokenizer::byte_of(int32_t id) const {
  return id < 0 || static_cast<size_t>(id) >= bytes_.size() ? -1 : bytes_[static_cast<size_t>(id)];
}

// Appends the characters that a run of byte pieces spells.
void UnigramTokenizer::append_bytes(std::string_view bytes, std::string& out) const {
  if (!find_invalid(bytes)) {
    out += bytes;
    return;
  }
  for (size_t at = 0; at < bytes.size();) {
    if (model_.form == TokenizerForm::kJson) {
      out += kReplacement;
      ++at;
    } else {
      append_utf8(out, text::decode(bytes, at));
    }
  }
}

std::string UnigramTokenizer::decode(std::span<const int32_t> ids) const {
  std::string out;
  std::string run;  // of bytes
  const bool strips = model_.form == TokenizerForm::kSentencePiece && (model_.dummy_prefix || model_.squeeze_spaces);
  bool at_begin = strips;  // a space there is the one that encode() put
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= model_.pieces.size()) continue;
    if (const int byte = byte_of(id); byte >= 0) {
      run += static_cast<char>(byte);
      continue;
    }
    append_bytes(run, out);
    run.clear();
    if (!out.empty()) at_begin = false;
    const Piece& piece = model_.pieces[static_cast<size_t>(id)];
    if (piece.kind == Piece::kControl) continue;
    std::string_view rest = piece.kind == Piece::kUnknown ? model_.unknown_surface : piece.text;
    if (at_begin && piece.kind != Piece::kUnknown && rest.starts_with(kSpaceMark)) {
      rest.remove_prefix(kSpaceMark.size());
      at_begin = model_.squeeze_spaces;  // takes every space at the beginning
    }
    while (!rest.empty()) {
      const size_t mark = rest.find(kSpaceMark);
      out += rest.substr(0, mark);
      if (mark == std::string_view::npos) break;
      out += ' ';
      rest.remove_prefix(mark + kSpaceMark.size());
    }
  }
  append_bytes(run, out);
  if (model_.form == TokenizerForm::kJson && model_.dummy_prefix && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

}  // namespace syrinx::text
