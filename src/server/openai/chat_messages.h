// `messages` of POST /v1/chat/completions.  Pure.
#pragma once

#include <vector>

#include "base/json.h"
#include "server/http/json_fields.h"
#include "text/chat/chat_message.h"

namespace syrinx::server {

// Only text: images, sound, files and tools are refused by name.  The role `developer` counts as `system`.
Checked take_messages(const Json& value, std::vector<text::ChatMessage>& messages);

}  // namespace syrinx::server
