// A language model's vocabulary and chat template: a conversation as the ids that the model reads, and the ids that end
// an answer.  Of a GGUF file, or of a folder as transformers writes it: tokenizer.json, tokenizer_config.json or
// chat_template.jinja, generation_config.json.  Immutable; const methods are thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/llama/chat_template.h"
#include "tensor/gguf.h"
#include "text/chat/chat_message.h"
#include "text/tokens/byte_bpe.h"

namespace syrinx::llama {

class Tokenizer {
 public:
  // `path`: a checkpoint of find_checkpoint().  kUnsupported for a kind of vocabulary, a pre-tokenizer or a template
  // that is not known, by its name; kNotFound or kDataLoss for what is missing.
  static Result<Tokenizer> load(const std::string& path);
  // `name` stands in messages.
  static Result<Tokenizer> read_gguf(const GgufFile& file, const std::string& name);

  // With the opening of an answer behind it.  `today` is chat_date()'s, for templates that need it.  The errors of
  // ChatTemplate::render() and ByteBpe::encode().
  Result<std::vector<int32_t>> encode(std::span<const text::ChatMessage> messages, std::string_view today) const;
  // The ids that a conversation begins with whenever it begins with that message of the system; empty for another.
  Result<std::vector<int32_t>> encode_opening(const text::ChatMessage& system, std::string_view today) const;
  bool ends(int32_t id) const;  // an answer
  // The bytes of a token, none of a special one.
  std::string bytes(int32_t id) const { return bpe_.bytes({&id, 1}); }

  const text::ByteBpe& bpe() const { return bpe_; }
  const ChatTemplate& chat() const { return chat_; }
  // As the maker recommends it, by the folder's generation_config.json or the template's maker.
  const std::optional<TemplateSampling>& sampling() const { return sampling_; }

 private:
  Tokenizer(text::ByteBpe bpe, ChatTemplate chat) : bpe_(std::move(bpe)), chat_(std::move(chat)) {}
  static Result<Tokenizer> read_folder(const std::string& folder);
  static Result<Tokenizer> make(text::ByteBpe bpe, std::string_view jinja, const std::string& name);
  Result<std::vector<int32_t>> ids_of(std::span<const ChatPart> parts) const;

  text::ByteBpe bpe_;
  ChatTemplate chat_;
  std::vector<int32_t> ends_;
  std::optional<TemplateSampling> sampling_;
};

}  // namespace syrinx::llama
