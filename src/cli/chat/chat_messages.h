// A conversation so far as `syrinx chat --messages` takes it: a JSON list of messages, the same as the server takes
// (text/chat/chat_messages.h).  Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat/chat_message.h"

namespace syrinx::cli {

inline constexpr size_t kMaxMessagesBytes = size_t{8} << 20;  // of the JSON text

// `name` stands in messages.  kDataLoss, kLimitExceeded beyond kMaxMessagesBytes or ChatRequest's limits, and the
// errors of parse_chat_message(); each names the message by its number, from 1.
Result<std::vector<text::ChatMessage>> parse_chat_messages(std::string_view json, const std::string& name);

}  // namespace syrinx::cli
