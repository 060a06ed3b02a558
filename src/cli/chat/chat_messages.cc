#include "cli/chat/chat_messages.h"

#include <utility>

#include "base/json.h"
#include "engine/chat/chat_engine.h"

namespace syrinx::cli {
namespace {

constexpr JsonLimits kLimits{.max_bytes = kMaxMessagesBytes,
                             .max_depth = 16,
                             .max_values = size_t{1} << 16,
                             .max_bare_bytes = 4096,
                             .takes_lone_surrogates = true};

constexpr const char* kForm = "give a JSON list of objects, such as [{\"role\": \"user\", \"content\": \"Hello.\"}]";

// False where a part is no text.
bool append_parts(const Json::Array& parts, std::string& content) {
  for (const Json& part : parts) {
    const Json* const type = part.find("type");
    const Json* const text = part.find("text");
    const bool is_text = type != nullptr && type->string() != nullptr && *type->string() == "text";
    if (!is_text || text == nullptr || text->string() == nullptr) return false;
    content += (content.empty() ? "" : "\n") + *text->string();
  }
  return true;
}

Result<text::ChatMessage> parse_message(const Json& json) {
  const Json* const role = json.find("role");
  if (role == nullptr || role->string() == nullptr) return fail(Code::kDataLoss, "it has no 'role'");
  text::ChatMessage message;
  SYRINX_TRY(message.role, text::parse_chat_role(*role->string() == "developer" ? "system" : *role->string()));
  const Json* const content = json.find("content");
  if (content != nullptr && content->string() != nullptr) {
    message.content = *content->string();
    return message;
  }
  const Json::Array* const parts = content == nullptr ? nullptr : content->array();
  if (parts == nullptr || !append_parts(*parts, message.content))
    return fail(Code::kDataLoss, "its 'content' is no text; pictures, sounds and calls of tools are not supported");
  return message;
}

}  // namespace

Result<std::vector<text::ChatMessage>> parse_chat_messages(std::string_view text, const std::string& name) {
  SYRINX_TRY(const Json json, parse_json(text, name, kLimits));
  const Json::Array* const list = json.array();
  if (list == nullptr) return fail(Code::kDataLoss, "'{}' holds no list of messages; {}", name, kForm);
  if (list->size() > ChatRequest::kMaxMessages)
    return fail(Code::kLimitExceeded, "'{}' holds {} messages, the limit is {}; leave older ones out", name,
                list->size(), ChatRequest::kMaxMessages);
  std::vector<text::ChatMessage> messages;
  size_t bytes = 0;
  for (const Json& item : *list) {
    auto message = parse_message(item);
    if (!message)
      return fail(message.error().code, "message {} of '{}': {}", messages.size() + 1, name, message.error().message);
    bytes += message->content.size();
    messages.push_back(std::move(*message));
  }
  if (bytes > ChatRequest::kMaxContentBytes)
    return fail(Code::kLimitExceeded, "the messages of '{}' have {} bytes, the limit is {}; leave older ones out", name,
                bytes, ChatRequest::kMaxContentBytes);
  return messages;
}

}  // namespace syrinx::cli
