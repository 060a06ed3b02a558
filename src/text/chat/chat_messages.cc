#include "text/chat/chat_messages.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/in_quotes.h"

namespace syrinx::text {
namespace {

struct Part {
  std::string_view type;
  const char* name;  // of its text; of one that is not supported: in messages
};
constexpr std::array kTexts = {Part{"text", "text"}, Part{"input_text", "text"}, Part{"output_text", "text"},
                               Part{"refusal", "refusal"}};
constexpr std::array kForeignParts = {
    Part{"image_url", "images"},  Part{"input_image", "images"}, Part{"video_url", "videos"},
    Part{"input_audio", "sound"}, Part{"audio_url", "sound"},    Part{"file", "files"},
    Part{"input_file", "files"},
};

// Fields of answers of other servers beside their text, which clients send back, and what programs keep of a message.
constexpr std::array<std::string_view, 10> kPassedOver = {"name",      "refusal",  "annotations", "reasoning_content",
                                                          "reasoning", "thinking", "id",          "type",
                                                          "status",    "timestamp"};
constexpr std::array<std::string_view, 5> kForeignFields = {"tool_calls", "tool_call_id", "function_call", "audio",
                                                            "images"};

template <size_t kCount>
const Part* find(const std::array<Part, kCount>& parts, std::string_view type) {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const Part& each) { return each.type == type; });
  return found == parts.end() ? nullptr : &*found;
}

template <size_t kCount>
bool holds(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_nothing(const Json& value) {
  return value.is_null() || (value.string() != nullptr && value.string()->empty()) ||
         (value.array() != nullptr && value.array()->empty());
}

Status append_part(const Json& part, std::string& content) {
  const Json* const type = part.find("type");
  if (type == nullptr || type->string() == nullptr)
    return fail(Code::kDataLoss,
                "a part of a message must be an object with a 'type'; give {{\"type\": \"text\", \"text\": ...}}");
  const std::string& name = *type->string();
  if (const Part* const foreign = find(kForeignParts, name))
    return fail(Code::kUnsupported, "a message has a part of the type '{}', and {} are not supported; give text alone",
                name, foreign->name);
  const Part* const known = find(kTexts, name);
  if (known == nullptr)
    return fail(Code::kUnsupported, "a message has a part of the type {}; give text alone", in_quotes(name));
  const Json* const text = part.find(known->name);
  if (text == nullptr || text->string() == nullptr)
    return fail(Code::kDataLoss, "a part of a message has no '{}'; give it one", known->name);
  content += (content.empty() ? "" : "\n") + *text->string();
  return {};
}

Status take_content(const Json& value, std::string& content) {
  if (value.is_null()) return {};
  if (value.string() != nullptr) {
    content = *value.string();
    return {};
  }
  if (value.array() == nullptr)
    return fail(Code::kDataLoss, "the 'content' of a message must be a text or a list of parts of text");
  for (const Json& part : *value.array()) SYRINX_TRY_VOID(append_part(part, content));
  return {};
}

Status take_role(const Json& value, ChatRole& role) {
  if (value.string() == nullptr)
    return fail(Code::kDataLoss, "the 'role' of a message must be system, user or assistant");
  SYRINX_TRY(role, parse_chat_role(*value.string() == "developer" ? "system" : *value.string()));
  return {};
}

Status take_member(const JsonMember& member, ChatMessage& message) {
  if (member.key == "role") return take_role(member.value, message.role);
  if (member.key == "content") return take_content(member.value, message.content);
  if (holds(kPassedOver, member.key) || is_nothing(member.value)) return {};
  if (holds(kForeignFields, member.key))
    return fail(Code::kUnsupported, "a message has '{}', and only text is supported; leave it out", member.key);
  return fail(Code::kInvalidArgument, "a message has a field {}; give 'role' and 'content'", in_quotes(member.key));
}

}  // namespace

Result<ChatMessage> parse_chat_message(const Json& json) {
  if (json.object() == nullptr || json.find("role") == nullptr)
    return fail(Code::kDataLoss, "a message must be an object with a 'role' and a 'content'");
  ChatMessage message;
  for (const JsonMember& member : *json.object()) SYRINX_TRY_VOID(take_member(member, message));
  return message;
}

}  // namespace syrinx::text
