// Name of a request in the answer's X-Request-Id and in the log.
#pragma once

#include <string>
#include <string_view>

namespace syrinx::server {

// 32 digits that nobody can guess; any thread.
std::string new_request_id();
// Whether a client's own will do: 1 to 64 letters, digits, '-', '_' and '.'.
bool is_request_id(std::string_view text);

}  // namespace syrinx::server
