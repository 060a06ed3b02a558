// The body of POST /v1/chat/completions: OpenAI's fields, and those of vLLM's and llama.cpp's servers for sampling, as
// docs/server.md lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/chat_engine.h"
#include "server/http/http_message.h"

namespace syrinx::server {

struct CompletionRequest {
  std::string model = {};  // empty: the server's
  ChatRequest chat = {};
  bool has_seed = false;  // else each answer is to be another
  bool stream = false;
  bool includes_usage = false;            // of a stream
  std::vector<std::string> ignored = {};  // fields that no model has
};

using CompletionRequestOrError = tl::expected<CompletionRequest, HttpError>;

// Errors name the field, its limit and what to give instead; `strict` refuses what no model has, else it is ignored.
CompletionRequestOrError parse_chat_request(std::string_view body, bool strict);

// The names of all fields that it knows, and of those among them that no model has.
std::vector<std::string> chat_fields();
std::vector<std::string> unheeded_chat_fields();

}  // namespace syrinx::server
