#include "server/upstream/chat_request.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "text/unicode.h"

namespace syrinx::server::upstream {
namespace {

Json message(const std::string& role, const std::string& content) {
  Json json;
  return json.set("role", role).set("content", content);
}

// The first of the turns that are sent: the newest ones, as far as there is room.
size_t first_sent(const std::vector<realtime::Turn>& turns, const ChatForm& form) {
  size_t first = turns.size(), items = 0, characters = 0;
  for (size_t i = turns.size(); i-- > 0;) {
    if (turns[i].text.empty()) continue;
    characters += text::count_code_points(turns[i].text);
    if (++items > form.max_items || (items > 1 && characters > form.max_characters)) break;
    first = i;
  }
  return first;
}

}  // namespace

bool asks_something(const realtime::Prompt& prompt) {
  return !prompt.instructions.empty() ||
         std::any_of(prompt.turns.begin(), prompt.turns.end(), [](const auto& turn) { return !turn.text.empty(); });
}

std::string chat_body(const realtime::Prompt& prompt, const ChatForm& form) {
  Json::Array messages;
  const std::string& instructions = prompt.instructions.empty() ? form.instructions : prompt.instructions;
  if (!instructions.empty()) messages.push_back(message("system", instructions));
  for (size_t i = first_sent(prompt.turns, form); i < prompt.turns.size(); ++i)
    if (const realtime::Turn& turn = prompt.turns[i]; !turn.text.empty())
      messages.push_back(message(turn.role, turn.text));
  Json json;
  if (!form.model.empty()) json.set("model", form.model);
  json.set("messages", std::move(messages)).set("stream", true);
  if (prompt.max_tokens > 0) json.set(form.max_tokens_field.c_str(), prompt.max_tokens);
  return json.dump();
}

}  // namespace syrinx::server::upstream
