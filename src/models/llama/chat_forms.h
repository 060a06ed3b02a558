// The chat templates that are known: their outlines, and how a conversation is written by each.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx::llama {

enum class TemplateKind { kChatMl, kLlama3, kQwen3 };
enum class ChatMaker { kUnknown, kSmolLm2, kQwen25, kQwen3, kLlama3 };  // of the sampling's defaults

struct ChatForm {
  TemplateKind family = TemplateKind::kChatMl;
  ChatMaker maker = ChatMaker::kUnknown;
  bool needs_message = false;   // the template fails on a conversation without messages
  bool always_prompts = false;  // the answer's opening comes even without add_generation_prompt
  // Written when the first message is not of the system.
  bool has_default_system = false;
  std::string default_system = {};
  // Llama 3.1 and later: a block of the system with two dates comes always.
  bool has_dates = false;
  bool uses_today = false;
  std::string fixed_date = {};  // else
  // Qwen3: an answer opens with empty thoughts; thoughts of blanks alone count as none.
  bool opens_thought = false;
  bool skips_blank_thoughts = false;
};

// kUnsupported, naming the family where its marks tell it, or the first part that differs from the nearest outline.
Result<ChatForm> find_chat_form(std::string_view outline, std::string_view jinja, const std::string& name);

}  // namespace syrinx::llama
