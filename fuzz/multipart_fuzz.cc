#include "base/json.h"
#include "server/http/multipart.h"
#include "server/openai/transcription_request.h"

// A Content-Type up to the first line feed, and the body behind it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(input.find('\n'), input.size());
  const std::string_view body = input.substr(std::min(line + 1, input.size()));
  const auto parts = syrinx::server::parse_multipart(input.substr(0, line), body);
  const auto check_told = [](const syrinx::server::HttpError& error) {
    // The answer to any input is JSON with a sentence.
    const auto told = syrinx::parse_json(syrinx::server::error_body(error), "the answer");
    if (!told || error.message.empty() || (error.status != 400 && error.status != 415)) __builtin_trap();
  };
  if (!parts) {
    check_told(parts.error());
    return 0;
  }
  if (parts->size() > syrinx::server::FormLimits::kMaxParts) __builtin_trap();
  for (const syrinx::server::FormPart& part : *parts)
    if (part.name.empty() || part.content.data() < body.data() ||
        part.content.data() + part.content.size() > body.data() + body.size())
      __builtin_trap();
  for (const bool translated : {false, true}) {
    const auto request = syrinx::server::parse_transcription_request(
        *parts, {.translated = translated, .strict = parts->size() % 2 == 0});
    if (!request) check_told(request.error());
    if (request && request->file.empty()) __builtin_trap();
  }
  return 0;
}
