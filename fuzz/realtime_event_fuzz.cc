#include "base/json.h"
#include "server/http/base64.h"
#include "server/realtime/appended_audio.h"
#include "server/realtime/conversation.h"
#include "server/realtime/events.h"
#include "server/realtime/session_config.h"
#include "text/unicode.h"

namespace {

namespace realtime = syrinx::server::realtime;
constexpr size_t kMaxCharacters = 100;

// The answer to any input is JSON with a sentence.
void check_told(const syrinx::server::HttpError& error) {
  if (error.message.empty() || error.status != 400) __builtin_trap();
  if (!syrinx::parse_json(realtime::error_json({.error = error}).dump(), "the answer")) __builtin_trap();
}

// A text that is appended in two parts gives whole samples.
void check_appended(std::string_view text, size_t size) {
  const auto format = size % 2 == 0 ? realtime::SoundFormat::kPcm : realtime::SoundFormat::kMuLaw;
  const size_t cut = text.empty() ? 0 : size % text.size();
  realtime::AppendedAudio appended;
  for (const std::string_view part : {text.substr(0, cut), text.substr(cut)}) {
    const auto taken = appended.take(part, format);
    if (!taken) continue;
    if (taken->bytes.size() % realtime::sample_bytes(format) != 0 || taken->next.group.digits > 3) __builtin_trap();
    appended.keep(*taken);
  }
}

// A text that is cut in parts has the samples of the whole, once a cut was seen: a first part of one digit is none.
void check_cuts(std::string_view text, size_t size) {
  if (text.size() < 2 || syrinx::server::base64_value(text.front()) < 0) return;
  const auto format = size % 2 == 0 ? realtime::SoundFormat::kPcm : realtime::SoundFormat::kMuLaw;
  realtime::AppendedAudio whole, cut, skipping;
  const auto expected = whole.take(text, format);
  if (!expected) return;
  std::vector<std::byte> bytes;
  for (size_t at = 0, step = 1; at < text.size(); at += step, step = 1 + size % 97) {
    const auto taken = cut.take(text.substr(at, step), format);
    if (!taken) __builtin_trap();
    bytes.insert(bytes.end(), taken->bytes.begin(), taken->bytes.end());
    cut.keep(*taken);
    skipping.skip(text.substr(at, step), format);
  }
  if (bytes != expected->bytes) __builtin_trap();
  const auto next = cut.take("AAAA", format), behind = skipping.take("AAAA", format);
  if (next.has_value() != behind.has_value() || (next && next->bytes != behind->bytes)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = realtime::parse_client_event({reinterpret_cast<const char*>(data), size});
  if (!message) {
    check_told(message.error().error);
    return 0;
  }
  const realtime::OutputChecks any_voice{.voice = [](const std::string&) { return syrinx::server::Checked(); },
                                         .has_speed = size % 5 != 0};
  if (const syrinx::Json* const session = message->fields.find("session");
      session != nullptr && session->object() != nullptr) {
    realtime::SessionConfig config;
    const realtime::InputChecks checks{.can_hear = size % 2 == 0,
                                       .can_detect = size % 3 != 0,
                                       .transcription = [](const auto&) { return syrinx::server::Checked(); }};
    if (const auto taken = realtime::update_session(*session, any_voice, checks, config); !taken)
      check_told(taken.error());
    if (config.input.turns && !(config.input.turns->silence_ms() >= 0 && config.input.turns->silence_ms() <= 10000))
      __builtin_trap();
    if (!(config.output.speed >= 0.25 && config.output.speed <= 4)) __builtin_trap();
    if (config.output.speed != 1 && !any_voice.has_speed) __builtin_trap();
    for (const auto dialect : {realtime::Dialect::kReleased, realtime::Dialect::kBeta})
      if (!syrinx::parse_json(realtime::session_json(config, "model", dialect).dump(), "the answer")) __builtin_trap();
  }
  if (const syrinx::Json* const audio = message->fields.find("audio"); audio != nullptr && audio->string() != nullptr) {
    if (const auto bytes = syrinx::server::decode_base64(*audio->string()); bytes)
      if (syrinx::server::base64(*bytes) != *audio->string()) __builtin_trap();
    check_appended(*audio->string(), size);
    check_cuts(*audio->string(), size);
  }
  if (const syrinx::Json* const json = message->fields.find("item"); json != nullptr) {
    auto item = realtime::parse_item(*json, kMaxCharacters);
    if (!item) {
      check_told(item.error());
      return 0;
    }
    if (syrinx::text::count_code_points(item->text) > kMaxCharacters) __builtin_trap();
    item->audio_ms = 1000;
    if (!item->text.starts_with(realtime::heard_text(*item, static_cast<double>(size % 1200)))) __builtin_trap();
  }
  return 0;
}
