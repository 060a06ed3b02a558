// A conversation with a language model: messages and their roles.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx::text {

enum class ChatRole { kSystem, kUser, kAssistant };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string content;  // UTF-8
};

std::string_view chat_role_name(ChatRole role);  // "system", ...
// kUnsupported for the roles of tools, kInvalidArgument for any other word.
Result<ChatRole> parse_chat_role(std::string_view word);

}  // namespace syrinx::text
