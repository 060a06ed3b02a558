// Chat templates: a conversation as the model was trained to read it.
//
// A model's file has its template in Jinja (GGUF: tokenizer.chat_template).  It is not run: one that is known by its
// outline (jinja_outline.h) is written by code of our own, to the byte as the template has it without tools and with
// thinking off; any other is refused.  Control tokens stay apart from text, so that no content becomes one; Qwen3's
// <think> is no control token but an added one, which a content may spell (byte_bpe.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "models/llama/chat_forms.h"
#include "text/chat/chat_message.h"

namespace syrinx::llama {

struct ChatPart {
  bool is_token = false;  // text is the name of a token; else it is to be encoded, whatever it spells
  std::string text;       // never empty
  bool operator==(const ChatPart&) const = default;
};

// As the makers publish them for the family.
struct TemplateSampling {
  float temperature = 1;
  float top_p = 1;
  int top_k = 0;  // 0: all tokens
  float repetition_penalty = 1;
  std::string_view source;  // the file or page of the maker
};

// Immutable; const methods are thread-safe.
class ChatTemplate {
 public:
  static constexpr size_t kMaxTemplateBytes = 64 << 10;
  static constexpr size_t kMaxMessages = 1024;
  static constexpr size_t kMaxContentBytes = 2 << 20;  // of all messages together

  // `name` stands in messages.  kLimitExceeded, kDataLoss (malformed) or kUnsupported.
  static Result<ChatTemplate> recognise(std::string_view jinja, const std::string& name);

  // The parts in order; no two texts follow each other.  `today` as chat_date writes it, for templates with
  // needs_date(). kLimitExceeded, and kInvalidArgument for a conversation that the template fails on: one without
  // messages.
  Result<std::vector<ChatPart>> render(std::span<const text::ChatMessage> messages, bool add_generation_prompt,
                                       std::string_view today = {}) const;

  std::string_view family() const;  // "ChatML", "Llama 3", "Qwen3"
  const ChatForm& form() const { return form_; }
  bool needs_date() const { return form_.uses_today; }
  // The parts begin with the token of the text's beginning, so the caller puts none in front.
  bool writes_bos() const { return form_.family == TemplateKind::kLlama3; }
  // Names of the tokens that the parts may have, special or added; the tokenizer needs all of them.
  std::span<const std::string_view> tokens() const;
  // Names of the tokens that end an answer; a tokenizer need not have all of them.
  std::span<const std::string_view> end_tokens() const;
  std::optional<TemplateSampling> sampling() const;

 private:
  explicit ChatTemplate(ChatForm form) : form_(std::move(form)) {}

  ChatForm form_;
};

// "05 Jul 2026", as Llama 3.2's template writes a date.  `month` and `day` count from 1.
std::string chat_date(int year, int month, int day);

}  // namespace syrinx::llama
