#include "server/upstream/chat_request.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/json.h"
#include "text/unicode.h"

namespace syrinx::server::upstream {
namespace {

Json message(const std::string& role, const std::string& content) {
  Json json;
  return json.set("role", role).set("content", content);
}

using Turns = std::vector<realtime::Turn>;

// The first of the turns that are sent: the newest ones, as far as there is room, and no answer whose question is left
// out, unless there is nothing else.
size_t first_sent(const Turns& turns, const ChatForm& form) {
  size_t first = turns.size(), items = 0, characters = 0;
  bool is_all = true;
  for (size_t i = turns.size(); i-- > 0 && is_all;) {
    if (turns[i].text.empty()) continue;
    characters += text::count_code_points(turns[i].text);
    is_all = ++items <= form.max_items && (items == 1 || characters <= form.max_characters);
    if (is_all) first = i;
  }
  if (is_all) return first;
  const auto is_asked = [](const auto& turn) { return turn.role == "user" && !turn.text.empty(); };
  const auto asked = std::find_if(turns.begin() + static_cast<std::ptrdiff_t>(first), turns.end(), is_asked);
  return asked == turns.end() ? first : static_cast<size_t>(asked - turns.begin());
}

// The templates of some models (Gemma's, Mistral's) refuse two messages of one role behind each other, and instructions
// anywhere but in front: who pauses amid a question has said two turns, and an answer that was interrupted before its
// first word is none.
Turns joined(Turns turns) {
  Turns joined = {{.role = "system", .text = ""}};
  for (realtime::Turn& turn : turns) {
    if (turn.text.empty()) continue;
    realtime::Turn& before = turn.role == "system" ? joined.front() : joined.back();
    if (before.role == turn.role)
      before.text += (before.text.empty() ? "" : "\n") + turn.text;
    else
      joined.push_back(std::move(turn));
  }
  if (joined.front().text.empty()) joined.erase(joined.begin());
  return joined;
}

}  // namespace

bool asks_something(const realtime::Prompt& prompt) {
  return !prompt.instructions.empty() ||
         std::any_of(prompt.turns.begin(), prompt.turns.end(), [](const auto& turn) { return !turn.text.empty(); });
}

Turns turns_to_send(const realtime::Prompt& prompt, const ChatForm& form) {
  Turns turns = {{.role = "system", .text = prompt.instructions.empty() ? form.instructions : prompt.instructions}};
  turns.insert(turns.end(), prompt.turns.begin() + static_cast<std::ptrdiff_t>(first_sent(prompt.turns, form)),
               prompt.turns.end());
  return joined(std::move(turns));
}

std::string chat_body(const realtime::Prompt& prompt, const ChatForm& form) {
  Json::Array messages;
  for (const realtime::Turn& turn : turns_to_send(prompt, form)) messages.push_back(message(turn.role, turn.text));
  Json json;
  if (!form.model.empty()) json.set("model", form.model);
  json.set("messages", std::move(messages)).set("stream", true);
  if (prompt.max_tokens > 0) json.set(form.max_tokens_field.c_str(), prompt.max_tokens);
  return json.dump();
}

}  // namespace syrinx::server::upstream
