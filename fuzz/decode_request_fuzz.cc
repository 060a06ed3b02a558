#include <algorithm>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/decode/batch_request.h"
#include "text/unicode.h"

// A Content-Type up to the first line feed, and the body of POST /v2/decode/batch/MODEL behind it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace decode = syrinx::server::decode;
  constexpr double kMaxS = 0.01;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(input.find('\n'), input.size());
  const std::string_view type = input.substr(0, line);
  static_cast<void>(decode::named_model(type));
  if (const auto fault = decode::batch_type_fault(type)) {
    if (fault->status != 415 || !syrinx::parse_json(decode::error_body(*fault), "the answer")) __builtin_trap();
    return 0;
  }
  const auto request =
      decode::parse_batch_request(type, std::string(input.substr(std::min(line + 1, input.size()))), kMaxS);
  if (!request) {
    // The answer to any input is JSON with a sentence.
    const auto told = syrinx::parse_json(decode::error_body(request.error()), "the answer");
    if (!told || request.error().message.empty() || request.error().status != 400) __builtin_trap();
    return 0;
  }
  if (request->sound.empty() || request->sound.size() % 2 != 0 || request->sound.size() > 320) __builtin_trap();
  if (request->opaque && syrinx::text::count_code_points(*request->opaque) > decode::kMaxOpaqueCharacters)
    __builtin_trap();
  return 0;
}
