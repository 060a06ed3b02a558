// The file of a conversation: its messages within the limits, or one sentence.
#include "cli/chat/chat_messages.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "engine/chat/chat_engine.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto messages = syrinx::cli::parse_chat_messages({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!messages) {
    SYRINX_CHECK(!messages.error().message.empty() && messages.error().message.find('\n') == std::string_view::npos);
    return 0;
  }
  SYRINX_CHECK(messages->size() <= syrinx::ChatRequest::kMaxMessages);
  for (const syrinx::text::ChatMessage& message : *messages)
    SYRINX_CHECK(message.content.size() <= size && !syrinx::text::find_invalid(message.content));
  return 0;
}
