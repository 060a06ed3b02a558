#include <string>

#include "base/json.h"
#include "server/http/json_fields.h"
#include "server/openai/speech_request.h"
#include "text/language.h"
#include "text/unicode.h"

namespace {

constexpr syrinx::server::SpeechLimits kLimits{.max_text_characters = 100};

// Half an emoji is left out, unless nothing else is there.
void check_text(const std::string& text) {
  static_cast<void>(syrinx::text::canonical_language(text));
  if (syrinx::text::find_invalid(text)) return;
  const std::string whole = syrinx::server::without_half_characters(text);
  if (whole != text && (whole.empty() || whole.find("\xEF\xBF\xBD") != std::string::npos)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_text({reinterpret_cast<const char*>(data), size});
  const auto request = syrinx::server::parse_speech_request({reinterpret_cast<const char*>(data), size}, kLimits);
  if (!request) {
    // The answer to any input is JSON with a sentence.
    const auto body = syrinx::parse_json(syrinx::server::error_body(request.error()), "the answer");
    if (!body || request.error().message.empty() || request.error().status != 400) __builtin_trap();
    return 0;
  }
  if (request->input.empty() || syrinx::text::count_code_points(request->input) > kLimits.max_text_characters)
    __builtin_trap();
  const double speed = request->knobs.number("speed").value_or(1);
  if (!(speed >= 0.25 && speed <= 4) || request->sample_rate_hz < 8000) __builtin_trap();
  return 0;
}
