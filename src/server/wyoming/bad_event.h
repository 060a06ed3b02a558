// Answers to events that are malformed or out of order.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "server/http/http_message.h"

namespace syrinx::server::wyoming {

inline constexpr size_t kMaxNameBytes = 256;  // of a voice, a model or a language

inline HttpError bad_event(std::string message) {
  return {.status = 400, .message = std::move(message), .code = "bad_event"};
}

}  // namespace syrinx::server::wyoming
