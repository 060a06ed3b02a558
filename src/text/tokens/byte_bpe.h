// Byte-level byte pair encoding as in GPT-2 (Radford et al. 2019: "Language models are unsupervised multitask
// learners") and tiktoken: text is cut by GPT-2's expression, each piece becomes its bytes, and of all neighbours the
// pair whose bytes together are the token of the lowest id is joined first, until no pair is a token (spec whisper.md,
// section 4).
//
// The rank of a pair is the id of what it makes, as in OpenAI's own tokenizer: a list of merges says the same again,
// and the published tokenizer.json of Whisper base lacks one of them ("Ġ t").
//
// A tokenizer is immutable and thread-safe.  encode() takes O(n log n), decode() linear time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace syrinx::text {

// Everything that a file says.
struct BpeVocabulary {
  struct Token {
    std::string bytes;     // of a special one its name, "<|endoftext|>"
    bool special = false;  // no text spells it and it is silent when decoded
  };
  std::vector<Token> tokens;  // an id is an index
};

class ByteBpe {
 public:
  static constexpr size_t kMaxTokens = size_t{1} << 19;
  static constexpr size_t kMaxTokenBytes = 1024;
  static constexpr size_t kMaxTextBytes = size_t{2} << 20;

  // `name` stands in messages.  kDataLoss where a byte has no token, kLimitExceeded beyond the limits.
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

 private:
  // Lookup by string_view.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Index = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;

  explicit ByteBpe(BpeVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  void append_piece(std::string_view piece, std::vector<int32_t>& ids) const;
  std::optional<int32_t> rank(std::string_view bytes) const;

  BpeVocabulary vocabulary_;
  Index ranks_, specials_;
};

// The pieces into which GPT-2's expression cuts a text, in order and without gaps:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::vector<std::string_view> split_gpt2(std::string_view text);

// Malformed bytes as U+FFFD, as for ByteBpe::decode().
std::string replace_malformed(std::string_view bytes);

}  // namespace syrinx::text
