#include "cli/chat/chat_messages.h"

#include <utility>

#include "base/json.h"
#include "engine/chat/chat_engine.h"
#include "text/chat/chat_messages.h"

namespace syrinx::cli {
namespace {

constexpr JsonLimits kLimits{.max_bytes = kMaxMessagesBytes,
                             .max_depth = 16,
                             .max_values = size_t{1} << 16,
                             .max_bare_bytes = 4096,
                             .drops_lone_surrogates = true};

constexpr const char* kForm = "give a JSON list of objects, such as [{\"role\": \"user\", \"content\": \"Hello.\"}]";

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
    auto message = text::parse_chat_message(item);
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
