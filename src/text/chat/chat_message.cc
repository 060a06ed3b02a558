#include "text/chat/chat_message.h"

#include "base/in_quotes.h"

namespace syrinx::text {

std::string_view chat_role_name(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem: return "system";
    case ChatRole::kUser: return "user";
    case ChatRole::kAssistant: break;
  }
  return "assistant";
}

Result<ChatRole> parse_chat_role(std::string_view word) {
  for (const ChatRole role : {ChatRole::kSystem, ChatRole::kUser, ChatRole::kAssistant})
    if (word == chat_role_name(role)) return role;
  if (word == "tool" || word == "function")
    return fail(Code::kUnsupported, "a message has the role '{}', and tools are not supported; leave such messages out",
                word);
  return fail(Code::kInvalidArgument, "a message has the role {}; the roles are system, user and assistant",
              in_quotes(word));
}

}  // namespace syrinx::text
