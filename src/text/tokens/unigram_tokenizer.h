// A unigram tokenizer: text to the most probable sequence of pieces, and back (Kudo 2018, arXiv:1804.10959; spec
// pocket-tts.md, section 2.1).  It does what the two libraries that publish such vocabularies do, sentencepiece 0.2
// and Hugging Face tokenizers 0.23, each where they differ.  sentencepiece_file.h and tokenizer_json.h read the files.
//
// A tokenizer is immutable and thread-safe.  Time and memory of encode() and decode() are linear in their input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokens/character_map.h"

namespace syrinx::text {

inline constexpr size_t kMaxTokenizerFileBytes = size_t{8} << 20;  // of either form

struct Piece {
  enum Kind : uint8_t { kNormal, kUnknown, kControl, kByte, kUnused };

  std::string text;  // U+2581 stands for a space; a byte piece is spelt <0x41>
  double score = 0;  // logarithm of its probability
  Kind kind = kNormal;
  bool matched = true;  // text that spells the piece may become the piece
};

// The library whose arithmetic and decoding are followed.
enum class TokenizerForm : uint8_t {
  kSentencePiece,  // scores are added in f32; a malformed byte is decoded as U+FFFD by itself
  // in f64; every byte of a run of byte pieces that is not UTF-8 is decoded as U+FFFD; a character map replaces whole
  // graphemes of up to five bytes by what their beginning becomes, and the characters of others one by one
  kJson,
};

// Everything that a file says.
struct UnigramModel {
  TokenizerForm form = TokenizerForm::kSentencePiece;
  std::vector<Piece> pieces;    // an id is an index
  CharacterMap map;             // applied before all else
  bool dummy_prefix = true;     // a space is put before every text, and taken away by decode()
  bool squeeze_spaces = false;  // no spaces at the ends, runs of them are one
  bool escape_spaces = true;    // a space is U+2581 to the pieces
  bool byte_fallback = false;   // a character that no piece covers becomes its bytes, else the unknown piece
  std::string unknown_surface;  // what decode() makes of the unknown piece
};

class UnigramTokenizer {
 public:
  static constexpr size_t kMaxPieces = 1 << 20;
  static constexpr size_t kMaxPieceBytes = 64;  // sentencepiece's trainer makes at most 16 characters of 4 bytes
  static constexpr size_t kMaxNodes = size_t{1} << 21;  // of the tree of matched pieces; a vocabulary of 256,000 has 1M
  static constexpr size_t kMaxTextBytes = size_t{2} << 20;  // four times that when the rules have been applied

  // `name` stands in messages.  kDataLoss for a vocabulary that contradicts itself, kLimitExceeded beyond the limits.
  static Result<UnigramTokenizer> make(UnigramModel model, const std::string& name);

  // kInvalidArgument for malformed UTF-8, naming the byte; kLimitExceeded beyond kMaxTextBytes.
  Result<std::vector<int32_t>> encode(std::string_view text) const;
  // Valid UTF-8.  Ids that are none are passed over.
  std::string decode(std::span<const int32_t> ids) const;

  size_t size() const { return model_.pieces.size(); }
  // The byte that a byte piece stands for, else -1.
  int byte_of(int32_t id) const;

 private:
  // The matched pieces as a tree of bytes: the children of a node lie side by side, by rising label.
  struct Node {
    uint32_t first_child = 0;
    uint16_t children = 0;
    uint8_t label = 0;
    int32_t id = -1;  // of the piece that ends here
  };

  explicit UnigramTokenizer(UnigramModel model) : model_(std::move(model)) {}
  Status index_pieces(const std::string& name);
  Status build_tree(const std::string& name);
  const Node* child(const Node& node, uint8_t label) const;
  Result<std::string> map_graphemes(std::string_view text) const;
  Result<std::string> normalize(std::string_view text) const;
  std::vector<int32_t> best_path(std::string_view text) const;
  void append_unknown(std::string_view characters, std::vector<int32_t>& ids) const;
  void append_bytes(std::string_view bytes, std::string& out) const;

  UnigramModel model_;
  std::vector<Node> nodes_;
  std::vector<int32_t> byte_ids_;  // [256] or empty
  std::vector<int16_t> bytes_;     // [pieces], byte_of
  int32_t unknown_id_ = -1;
  double unknown_score_ = 0;
};

// The byte that a piece spells as <0x41>, else -1.
int spelt_byte(std::string_view piece);

}  // namespace syrinx::text
