#include "models/transducer/vocabulary.h"

#include <utility>

#include "text/tokens/unigram_tokenizer.h"
#include "text/unicode.h"

namespace syrinx::transducer {
namespace {

using text::StoredPiece;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

bool in_angles(std::string_view text) { return text.size() > 2 && text.starts_with('<') && text.ends_with('>'); }

}  // namespace

Vocabulary::Vocabulary(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  for (size_t id = 0; id < tokens_.size(); ++id) ids_.emplace(tokens_[id].text, static_cast<int32_t>(id));
}

Vocabulary Vocabulary::from_pieces(text::StoredPieces pieces) {
  std::vector<Token> tokens;
  tokens.reserve(pieces.pieces.size());
  for (StoredPiece& piece : pieces.pieces) {
    const bool spoken = piece.type == StoredPiece::kNormal || piece.type == StoredPiece::kByte ||
                        (piece.type == StoredPiece::kUserDefined && !in_angles(piece.text));
    const int byte = piece.type == StoredPiece::kByte ? text::spelt_byte(piece.text) : -1;
    tokens.push_back({.text = std::move(piece.text), .score = piece.score, .special = !spoken, .byte = byte});
  }
  Vocabulary out(std::move(tokens));
  out.bpe_ = pieces.bpe;
  return out;
}

Vocabulary Vocabulary::from_labels(std::vector<std::string> labels, bool characters) {
  std::vector<Token> tokens;
  tokens.reserve(labels.size());
  for (std::string& label : labels) {
    const bool special = !characters && in_angles(label);
    tokens.push_back({.text = std::move(label), .special = special});
  }
  return Vocabulary(std::move(tokens));
}

bool Vocabulary::begins_word(int32_t id) const {
  const std::string& text = token(id).text;
  return text.starts_with(kSpace) || text == " ";
}

int32_t Vocabulary::find(std::string_view text) const {
  const auto found = ids_.find(std::string(text));
  return found == ids_.end() ? -1 : found->second;
}

std::string Vocabulary::text(std::span<const int32_t> ids) const {
  std::string out;
  bool has_bytes = false;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= size() || is_special(id)) continue;
    if (token(id).byte >= 0) {
      out += static_cast<char>(token(id).byte);
      has_bytes = true;
      continue;
    }
    std::string_view piece = token(id).text;
    while (!piece.empty()) {
      const size_t space = std::min(piece.find(kSpace), piece.size());
      out += piece.substr(0, space);
      if (space == piece.size()) break;
      out += ' ';
      piece.remove_prefix(space + kSpace.size());
    }
  }
  if (has_bytes) {
    const std::string all = std::exchange(out, {});
    std::string_view rest = all;
    for (auto at = text::find_invalid(rest); at; at = text::find_invalid(rest)) {
      out += rest.substr(0, *at);
      rest.remove_prefix(*at + 1);
    }
    out += rest;
  }
  const size_t first = out.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return out.substr(first, out.find_last_not_of(' ') - first + 1);
}

}  // namespace syrinx::transducer
