// One answer of a language model, written as it is made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/chat/chat_engine.h"

namespace syrinx::cli {

struct ChatTask {
  ChatSampling sampling = {};
  uint64_t seed = 0;  // of the first answer; each further one has the number that follows
  std::vector<std::string> stops = {};
  size_t max_tokens = 0;
  bool json = false;  // a line for each piece of the text, and a last one with the end and the figures
};

using ChatWriter = std::function<Status(std::string_view)>;

// `number` counts the answers from 0.  It is not wanted any more after Ctrl-C.
ChatRequest request_of(const ChatTask& task, std::vector<text::ChatMessage> messages, uint64_t number);

// Writes the answer piece by piece, then a line break.  `text` is all that has been written of it, also where it fails:
// kCancelled after Ctrl-C, the engine's and the writer's errors.
Status write_answer(const ChatTask& task, const ChatEngine& engine, ChatAnswer& answer, const ChatWriter& write,
                    std::string& text);

// Why an answer ends that the model would have continued, for its reader; empty for other ends.
std::string describe_end(ChatEnd end, const ChatEngine& engine);

}  // namespace syrinx::cli
