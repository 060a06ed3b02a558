// Byte-level byte pair encoding (Radford et al. 2019: "Language models are unsupervised multitask learners"): text is
// cut into pieces (bpe_split.h), each piece becomes its bytes, and of all neighbours the pair of the lowest rank is
// joined first, until no pair has a rank.  Two orders of ranks are published:
//
// - OpenAI's tokenizers join any pair whose bytes together are a token, whose id is the rank (spec whisper.md, section
//   4): a list of merges says the same again, and that of Whisper base lacks one ("Ġ t").
// - Hugging Face's join the pairs of a list of merges, in its order.
//
// Added tokens that are not special are found in a text before it is cut, as Hugging Face's tokenizers do.  The name of
// a special one stays text, so that no text of a user becomes a control token; callers put the ids of those.
//
// A tokenizer is immutable and thread-safe.  encode() takes O(n log n), decode() linear time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/tokens/bpe_added.h"
#include "text/tokens/bpe_merges.h"
#include "text/tokens/bpe_split.h"

namespace syrinx::text {

// Everything that a file says.
struct BpeVocabulary {
  struct Token {
    std::string bytes;        // of a special or added one its name, "<|endoftext|>"
    bool special = false;     // no text spells it and it is silent when decoded
    bool added = false;       // found in a text before it is cut, and shown when decoded
    bool normalized = false;  // an added one that is found after the text has been brought to its normal form
  };
  struct Merge {
    std::string left, right;  // bytes of two tokens, which together are those of a third
  };

  std::vector<Token> tokens;                 // an id is an index
  std::optional<std::vector<Merge>> merges;  // the first to be joined first; without them the rank is the id
  bool ignore_merges = false;                // a piece that is a token is that token, as it is without merges
  BpeSplit split = BpeSplit::kGpt2;
  bool nfc = false;  // texts are brought to the normal form C first
};

class ByteBpe {
 public:
  static constexpr size_t kMaxTokens = size_t{1} << 19, kMaxMerges = size_t{1} << 19;
  static constexpr size_t kMaxTokenBytes = 1024;
  static constexpr size_t kMaxTextBytes = size_t{2} << 20;

  // `name` stands in messages.  kDataLoss where a byte has no token, for merges that name none, and for added tokens
  // that are special; kLimitExceeded beyond the limits.  Of a vocabulary with merges only printable ASCII has to have
  // tokens: SmolLM2's lacks 21 bytes, which are passed over as in the maker's library.
  static Result<ByteBpe> make(BpeVocabulary vocabulary, const std::string& name);
  ByteBpe(ByteBpe&&) = default;
  ByteBpe& operator=(ByteBpe&&) = default;

  // Any bytes; what is no UTF-8 is cut like symbols.  kLimitExceeded beyond kMaxTextBytes.
  Result<std::vector<int32_t>> encode(std::string_view text) const;
  // The bytes of the tokens joined, which may end or break inside a character.  Specials and ids that are none are
  // passed over.
  std::string bytes(std::span<const int32_t> ids) const;
  // The same as UTF-8: each longest beginning of a character that is not continued becomes U+FFFD, as Python's
  // decode("utf-8", errors="replace") does.
  std::string decode(std::span<const int32_t> ids) const;

  size_t size() const { return vocabulary_.tokens.size(); }
  bool is_special(int32_t id) const;
  std::string_view special_name(int32_t id) const;  // empty for others
  std::optional<int32_t> find_special(std::string_view name) const;
  // A special or an added one.
  std::optional<int32_t> find_named(std::string_view name) const;

 private:
  // Lookup by string_view.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Index = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;
  struct Work;

  explicit ByteBpe(BpeVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Status index_tokens(const std::string& name);
  Status index_bytes(const std::string& name);
  Status index_merges(const std::string& name);
  void append_text(std::string_view text, Work& work, std::vector<int32_t>& ids) const;
  void append_piece(std::string_view piece, Work& work, std::vector<int32_t>& ids) const;
  BpeMerges::Place joined(int32_t left, int32_t right, std::string_view bytes) const;
  std::optional<int32_t> find_token(std::string_view bytes) const;

  BpeVocabulary vocabulary_;  // without its merges
  Index ids_, specials_;      // of tokens that are not special, and of special ones
  std::array<int32_t, 256> byte_ids_{};
  bool lacks_bytes_ = false;
  std::optional<BpeMerges> merges_;
  BpeAdded added_, normalized_;
};

// Malformed bytes as U+FFFD, as for ByteBpe::decode().
std::string replace_malformed(std::string_view bytes);

}  // namespace syrinx::text
