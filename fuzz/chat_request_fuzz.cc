#include <string>

#include "base/json.h"
#include "engine/chat/chat_engine.h"
#include "server/openai/chat_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  for (const bool strict : {false, true}) {
    const auto request = syrinx::server::parse_chat_request(body, strict);
    if (!request) {
      // The answer to any input is JSON with a sentence.
      const auto answer = syrinx::parse_json(syrinx::server::error_body(request.error()), "the answer");
      if (!answer || request.error().message.empty() || request.error().status != 400) __builtin_trap();
      continue;
    }
    // The engine refuses none of what it takes.
    if (!syrinx::check_chat_request(request->chat)) __builtin_trap();
    if (strict && !request->ignored.empty()) __builtin_trap();
    for (const std::string& field : request->ignored)  // a header's value
      if (field.find_first_of("\r\n") != std::string::npos) __builtin_trap();
  }
  return 0;
}
