// `messages` of POST /v1/chat/completions.  Pure.
#pragma once

#include <vector>

#include "base/json.h"
#include "server/http/json_fields.h"
#include "text/chat/chat_message.h"

namespace syrinx::server {

// Each as text/chat/chat_messages.h has it; the errors name what is wrong.
Checked take_messages(const Json& value, std::vector<text::ChatMessage>& messages);

}  // namespace syrinx::server
