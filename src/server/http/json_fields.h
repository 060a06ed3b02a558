// Fields of a client's JSON: each is taken or refused by its name.  Null counts as absent.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "server/http/http_message.h"

namespace syrinx::server {

inline constexpr size_t kMaxNameBytes = 256;

using Checked = tl::expected<void, HttpError>;

Checked take_text(const Json& value, const char* field, std::string& text, size_t max_bytes = kMaxNameBytes);
Checked take_number(const Json& value, const char* field, double min, double max, double& number);
Checked take_flag(const Json& value, const char* field, bool& flag);
// Drops U+FFFD, the remains of half an emoji, which cannot be spoken; a text of nothing else stays as it is.
std::string without_half_characters(const std::string& text);
// A name, or {"id": "..."}.
Checked take_voice(const Json& value, const char* field, std::string& voice);

}  // namespace syrinx::server
