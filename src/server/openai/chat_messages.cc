#include "server/openai/chat_messages.h"

#include <utility>

#include "engine/chat/chat_engine.h"
#include "text/chat/chat_messages.h"

namespace syrinx::server {

Checked take_messages(const Json& value, std::vector<text::ChatMessage>& messages) {
  constexpr const char* kField = "messages";
  if (value.array() == nullptr) return refuse(kField, "'messages' must be a list of messages");
  if (value.array()->size() > ChatRequest::kMaxMessages)
    return refuse(kField, "'messages' has {} messages; give at most {}, and leave older ones out",
                  value.array()->size(), ChatRequest::kMaxMessages);
  for (const Json& each : *value.array()) {
    auto message = text::parse_chat_message(each);
    if (!message) return refuse(kField, "{}", message.error().message);
    messages.push_back(std::move(*message));
  }
  return {};
}

}  // namespace syrinx::server
