// The header that names the fields of a request which the model lacks.
#pragma once

#include <string>
#include <vector>

#include "server/http/http_message.h"

namespace syrinx::server {

inline HttpReply naming_ignored(HttpReply reply, const std::vector<std::string>& fields) {
  if (!fields.empty()) reply.headers.push_back({"X-Syrinx-Ignored", fmt::format("{}", fmt::join(fields, ", "))});
  return reply;
}

}  // namespace syrinx::server
