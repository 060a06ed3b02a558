// Pre-tokenizers of byte-level BPE: the pieces into which a text is cut, no token crosses their borders.  Published as
// expressions for a regex engine, here as matchers that take linear time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace syrinx::text {

enum class BpeSplit : uint8_t {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // Each \p{N} alone, then what lies between them as by kGpt2.
  kGpt2LoneDigits,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kCl100k,
  // The same with \p{N} alone.
  kCl100kLoneDigits,
  // Mistral's Tekken keeps marks in words and cuts before a capital letter; U is \p{Lu}\p{Lt}, B \p{Ll},
  // S \p{Lm}\p{Lo}\p{M}:
  // [^\r\n\p{L}\p{N}]?[US]*[BS]+|[^\r\n\p{L}\p{N}]?[US]+[BS]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
  kCasedWords,
};

// By the text of the expression; nothing for any other.
std::optional<BpeSplit> find_bpe_expression(std::string_view expression);

// The end of the piece that begins at `begin`, which is inside `text` and where the piece before it ends.  A malformed
// byte counts as a symbol.
size_t piece_end(std::string_view text, size_t begin, BpeSplit split);
// All of them, in order and without gaps.
std::vector<std::string_view> split_bpe(std::string_view text, BpeSplit split);
inline std::vector<std::string_view> split_gpt2(std::string_view text) { return split_bpe(text, BpeSplit::kGpt2); }

}  // namespace syrinx::text
