#include "server/openai/chat_messages.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/in_quotes.h"
#include "engine/chat/chat_engine.h"

namespace syrinx::server {
namespace {

constexpr const char* kField = "messages";

struct Part {
  const char *type, *what;
};
constexpr std::array kForeignParts = {
    Part{"image_url", "images"},  Part{"input_image", "images"}, Part{"video_url", "videos"},
    Part{"input_audio", "sound"}, Part{"audio_url", "sound"},    Part{"file", "files"},
    Part{"input_file", "files"},
};

// Fields of answers of other servers beside their text, which clients send back.
constexpr std::array<std::string_view, 5> kPassedOver = {"name", "refusal", "annotations", "reasoning_content",
                                                         "reasoning"};
constexpr std::array<std::string_view, 4> kOfTools = {"tool_calls", "tool_call_id", "function_call", "audio"};

bool is_nothing(const Json& value) {
  return value.is_null() || (value.string() != nullptr && value.string()->empty()) ||
         (value.array() != nullptr && value.array()->empty());
}

Checked take_part(const Json& part, std::string& content) {
  const Json* const type = part.find("type");
  if (type == nullptr || type->string() == nullptr)
    return refuse(kField,
                  "a part of a message must be an object with a 'type'; give {{\"type\": \"text\", \"text\": ...}}");
  const std::string& name = *type->string();
  const auto foreign =
      std::find_if(kForeignParts.begin(), kForeignParts.end(), [&](const Part& each) { return each.type == name; });
  if (foreign != kForeignParts.end())
    return refuse(kField, "a message has a part of the type '{}', and {} are not supported; give text alone", name,
                  foreign->what);
  if (name != "text" && name != "input_text")
    return refuse(kField, "a message has a part of the type {}; give text alone", in_quotes(name));
  const Json* const text = part.find("text");
  if (text == nullptr || text->string() == nullptr)
    return refuse(kField, "a part of a message has no 'text'; give it one");
  content += (content.empty() ? "" : "\n") + *text->string();
  return {};
}

Checked take_content(const Json& value, std::string& content) {
  if (value.is_null()) return {};
  if (value.string() != nullptr) {
    content = without_half_characters(*value.string());
    return {};
  }
  if (value.array() == nullptr)
    return refuse(kField, "the 'content' of a message must be a text or a list of parts of text");
  for (const Json& part : *value.array())
    if (auto taken = take_part(part, content); !taken) return taken;
  content = without_half_characters(content);
  return {};
}

Checked take_role(const Json& value, text::ChatRole& role) {
  if (value.string() == nullptr) return refuse(kField, "the 'role' of a message must be system, user or assistant");
  const auto parsed = text::parse_chat_role(*value.string() == "developer" ? "system" : *value.string());
  if (!parsed) return refuse(kField, "{}", parsed.error().message);
  role = *parsed;
  return {};
}

Checked take_member(const JsonMember& member, text::ChatMessage& message) {
  if (member.key == "role") return take_role(member.value, message.role);
  if (member.key == "content") return take_content(member.value, message.content);
  const auto is_key = [&](std::string_view known) { return known == member.key; };
  if (std::any_of(kPassedOver.begin(), kPassedOver.end(), is_key) || is_nothing(member.value)) return {};
  if (std::any_of(kOfTools.begin(), kOfTools.end(), is_key))
    return refuse(kField, "a message has '{}', and only text is supported; leave it out", member.key);
  return refuse(kField, "a message has a field {}; give 'role' and 'content'", in_quotes(member.key));
}

}  // namespace

Checked take_messages(const Json& value, std::vector<text::ChatMessage>& messages) {
  if (value.array() == nullptr) return refuse(kField, "'messages' must be a list of messages");
  if (value.array()->size() > ChatRequest::kMaxMessages)
    return refuse(kField, "'messages' has {} messages; give at most {}, and leave older ones out",
                  value.array()->size(), ChatRequest::kMaxMessages);
  for (const Json& each : *value.array()) {
    if (each.object() == nullptr || each.find("role") == nullptr)
      return refuse(kField, "a message must be an object with a 'role' and a 'content'");
    text::ChatMessage message;
    for (const JsonMember& member : *each.object())
      if (auto taken = take_member(member, message); !taken) return taken;
    messages.push_back(std::move(message));
  }
  return {};
}

}  // namespace syrinx::server
