// The request to a chat endpoint of OpenAI's kind.  Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/realtime/reply_source.h"

namespace syrinx::server::upstream {

struct ChatForm {
  std::string model = {};                         // empty: not named
  std::string instructions = {};                  // where the prompt has none
  std::string max_tokens_field = "max_tokens";    // what the endpoint calls an answer's limit
  size_t max_items = 64, max_characters = 32768;  // of the conversation; the newest item is sent whatever it has
};

// Whether there is anything to be answered: a turn with words, or the prompt's own instructions.
bool asks_something(const realtime::Prompt& prompt);
// The turns that are sent, the instructions in front: roles alternate, and there is text in each.
std::vector<realtime::Turn> turns_to_send(const realtime::Prompt& prompt, const ChatForm& form);
// The body of POST /chat/completions, with `stream`.
std::string chat_body(const realtime::Prompt& prompt, const ChatForm& form);

}  // namespace syrinx::server::upstream
