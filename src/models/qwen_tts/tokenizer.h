// The text side's tokenizer and templates (spec qwen3-tts.md, sections 2.1 and 2.2; the maker's
// _build_assistant_text(), _build_ref_text() and _build_instruct_text()): vocab.json, merges.txt and
// tokenizer_config.json of a checkpoint.
//
// Texts are cut as by the maker's package with a local folder (text/tokens/bpe_split.h): by Tekken's expression where
// config.json names no transformers_version, or one above 4.57.2 and below 5, and vocab.json has more than 100000
// tokens, as the published ones do; by Qwen's own, kCl100kLoneDigits, otherwise.  Unlike there, the name of a special
// token in a text stays text, and white space around a spoken text is left out, since a line end in front of it would
// join the template's.  Immutable; const methods are thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/qwen_tts/config.h"
#include "text/tokens/byte_bpe.h"

namespace syrinx::qwen_tts {

// Contents of the files.
struct TokenizerFiles {
  std::string_view vocabulary, merges, config;
};

class Tokenizer {
 public:
  // From a checkpoint's folder.  kNotFound; errors of read().
  static Result<Tokenizer> load(const std::string& folder, const Config& config);
  // `name` stands in messages.  kDataLoss: malformed, or ids that are not those of `config`; kUnsupported: a template
  // that is not of the length that the layout of prompts counts on; kLimitExceeded.
  static Result<Tokenizer> read(const TokenizerFiles& files, const Config& config, const std::string& name);

  // Tokens of a text that is spoken, at least one: the target's, or a reference's transcript.  kInvalidArgument: no
  // text; kLimitExceeded.
  Result<std::vector<int32_t>> encode(std::string_view text) const;
  // A stretch of such a text between two places that no token reaches across (text/tokens/bpe_split.h), with its
  // blanks; none of an empty one.
  Result<std::vector<int32_t>> encode_stretch(std::string_view stretch) const { return bpe_.encode(stretch); }
  // <|im_start|>user\n INSTRUCTION <|im_end|>\n, none of an empty one.
  Result<std::vector<int32_t>> encode_instruction(std::string_view instruction) const;
  // <|im_start|>assistant\n, in front of the text: 3 tokens.
  const std::vector<int32_t>& role() const { return role_; }

  const text::ByteBpe& bpe() const { return bpe_; }

 private:
  Tokenizer(text::ByteBpe bpe, const TextIds& ids) : bpe_(std::move(bpe)), ids_(ids) {}

  text::ByteBpe bpe_;
  TextIds ids_;
  std::vector<int32_t> role_;
};

}  // namespace syrinx::qwen_tts
