// The labels of a checkpoint and the text that they spell (spec transducer-asr.md, section 1.5).
// Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/tokens/sentencepiece_file.h"

namespace syrinx::transducer {

struct Token {
  std::string text;      // of pieces: U+2581 stands for a space
  float score = 0;       // of pieces from a tokenizer: BPE's merge rank, negated
  bool special = false;  // never part of a transcript: <unk>, <EOU>, <|en|>
  int byte = -1;         // of a piece that stands for one byte: which
};

class Vocabulary {
 public:
  // From a tokenizer's pieces.
  static Vocabulary from_pieces(text::StoredPieces pieces);
  // From the labels that a configuration lists: pieces, or characters with blanks between words.
  static Vocabulary from_labels(std::vector<std::string> labels, bool characters);

  size_t size() const { return tokens_.size(); }  // V, without the blank
  const Token& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  bool is_special(int32_t id) const { return token(id).special; }
  // Whether a word begins with this label: U+2581 at its front, or the blank between words of a character model.
  bool begins_word(int32_t id) const;
  // The label of this text, or -1.
  int32_t find(std::string_view text) const;
  // Whether scores are BPE's, so that text can be encoded: merge the adjacent pair whose joint piece scores highest.
  bool is_bpe() const { return bpe_; }
  // The labels joined, blanks where words begin, none at the ends.  Specials, ids that are none and bytes that spell no
  // character of UTF-8, or only its beginning, are passed over.
  std::string text(std::span<const int32_t> ids) const;

 private:
  explicit Vocabulary(std::vector<Token> tokens);

  std::vector<Token> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  bool bpe_ = false;
};

}  // namespace syrinx::transducer
