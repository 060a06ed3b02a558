// A conversation to be answered, as a protocol hands it to the server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/chat/chat_engine.h"

namespace syrinx::server {

struct ChatOrder {
  const char* event = "chat";             // of the log's line
  std::string model = {};                 // as the client calls it; empty: the server's
  ChatRequest request = {};               // without is_wanted
  bool drops_oldest = false;              // of a conversation that is too long; else it is refused
  std::vector<std::string> ignored = {};  // fields of the request that no model has
  std::string id = {};                    // of the request
  int64_t arrived_ns = 0;
};

}  // namespace syrinx::server
