// A message of a conversation as OpenAI's clients write it in JSON: for requests and for files.  Pure, thread-safe.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "text/chat/chat_message.h"

namespace syrinx::text {

// An object with `role` (`developer` counts as `system`) and `content`: a text, parts of text, each a line, or null for
// none; a part of the type `refusal` is the text of it.  Fields of other servers' answers beside their text are passed
// over.  kUnsupported for images, sound, files and tools, kInvalidArgument for an unknown role or field, kDataLoss
// where it is no such object.
Result<ChatMessage> parse_chat_message(const Json& json);

}  // namespace syrinx::text
