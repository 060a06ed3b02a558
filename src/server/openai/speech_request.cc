#include "server/openai/speech_request.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "server/http/json_fields.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxDepth = 2;  // {"voice": {"id": ...}}
constexpr size_t kMaxValues = 1024, kMaxBareBytes = 64 << 10;
constexpr std::array kRates = {8000, 12000, 16000, 22050, 24000, 44100, 48000};
constexpr const char* kNoInstructions =
    "no model of this server takes them; leave them out, or have the operator set ignore_instructions";

Checked take_input(const Json& value, const SpeechLimits& limits, SpeechRequest& request) {
  if (value.string() == nullptr) return refuse("input", "'input' must be the text to be spoken");
  request.input = *value.string();
  const size_t characters = text::count_code_points(request.input);
  if (characters > limits.max_text_characters) {
    HttpError error{.status = 400,
                    .message = fmt::format("'input' has {} characters; give at most {}, and more in further requests",
                                           characters, limits.max_text_characters),
                    .param = "input",
                    .code = "string_above_max_length"};
    return tl::unexpected(std::move(error));
  }
  return {};
}

Checked take_instructions(const Json& value, const SpeechLimits& limits, SpeechRequest& request) {
  if (value.is_null()) return {};
  if (value.string() == nullptr) return refuse("instructions", "'instructions' must be a text");
  if (value.string()->empty() || limits.ignore_instructions) return {};
  request.instructions = *value.string();
  return refuse("instructions", "'instructions' is not supported: {}", kNoInstructions);
}

Checked take_format(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  std::string name;
  if (auto taken = take_text(value, "response_format", name); !taken) return taken;
  if (name.empty()) return {};
  const auto format = parse_audio_format(name);
  if (!format)
    return refuse("response_format", "'response_format' is {}; choose mp3, opus, aac, flac, wav or pcm",
                  in_quotes(name));
  request.format = *format;
  return {};
}

Checked take_stream_format(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  std::string name;
  if (auto taken = take_text(value, "stream_format", name); !taken) return taken;
  if (name != "" && name != "audio" && name != "sse")
    return refuse("stream_format", "'stream_format' is {}; choose audio or sse", in_quotes(name));
  request.events = name == "sse";
  return {};
}

Checked take_seed(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  if (value.is_null()) return {};
  const auto seed = value.natural();
  if (!seed) return refuse("seed", "'seed' must be a whole number from 0 to {}", UINT64_MAX);
  request.seed = *seed;
  return {};
}

Checked take_rate(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  if (value.is_null()) return {};
  if (value.whole() == nullptr || std::find(kRates.begin(), kRates.end(), *value.whole()) == kRates.end())
    return refuse("sample_rate", "'sample_rate' must be 8000, 12000, 16000, 22050, 24000, 44100 or 48000 Hz");
  request.sample_rate_hz = static_cast<int>(*value.whole());
  return {};
}

Checked take_stream(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  bool stream = true;
  auto taken = take_flag(value, "stream", stream);
  request.whole = !stream;
  return taken;
}

Checked take_temperature(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  double temperature = 0;
  auto taken = take_number(value, "temperature", 0, 2, temperature);
  if (taken && !value.is_null()) request.temperature = temperature;
  return taken;
}

struct Field {
  const char* name;
  Checked (*take)(const Json& value, const SpeechLimits& limits, SpeechRequest& request);
  const char* instead = nullptr;  // of one that no model heeds: why, and what to do; `take` may be null
};

// The last ones are other servers' fields; their refusals name the alternative here.
constexpr std::array kFields = {
    Field{"input", take_input},
    Field{"model", [](const Json& value, auto&, auto& request) { return take_text(value, "model", request.model); }},
    Field{"voice", [](const Json& value, auto&, auto& request) { return take_voice(value, "voice", request.voice); }},
    Field{"language",
          [](const Json& value, auto&, auto& request) { return take_text(value, "language", request.language); }},
    Field{"response_format", take_format},
    Field{"speed",
          [](const Json& value, auto&, auto& request) { return take_number(value, "speed", 0.25, 4, request.speed); }},
    Field{"stream_format", take_stream_format},
    Field{"stream", take_stream},
    Field{"seed", take_seed},
    Field{"sample_rate", take_rate},
    Field{"temperature", take_temperature},
    Field{"instructions", take_instructions, kNoInstructions},
    Field{"top_k", nullptr,
          "no model of this server chooses among tokens; leave it out, or give Pocket TTS a 'temperature'"},
    Field{"top_p", nullptr,
          "no model of this server chooses among tokens; leave it out, or give Pocket TTS a 'temperature'"},
    Field{"max_new_tokens", nullptr,
          "no model of this server counts its sound in tokens; leave it out, and give a shorter 'input'"},
    Field{"ref_audio", nullptr,
          "a request brings no recording; upload it as a voice (POST /v1/audio/voices), and name that as 'voice'"},
    Field{"ref_text", nullptr,
          "voices are made of a recording without its words; leave it out, and upload the recording as a voice (POST "
          "/v1/audio/voices)"},
    Field{"task_type", nullptr,
          "no model of this server has more than one task; leave it out, and choose by 'model' and 'voice'"},
};

// Those that some model heeds.
std::string heeded_names() {
  std::string names;
  for (const Field& field : kFields)
    if (field.instead == nullptr) names += (names.empty() ? "" : ", ") + std::string(field.name);
  return names;
}

Checked take_field(const JsonMember& member, const SpeechLimits& limits, SpeechRequest& request) {
  const auto field =
      std::find_if(kFields.begin(), kFields.end(), [&](const Field& known) { return known.name == member.key; });
  if (field == kFields.end())
    return tl::unexpected(HttpError{
        .status = 400,
        .message = fmt::format("there is no field {}; a request may have {}", in_quotes(member.key), heeded_names()),
        .param = shortened(member.key),
        .code = "unknown_parameter"});
  if (field->take != nullptr) return field->take(member.value, limits, request);
  if (member.value.is_null()) return {};
  return refuse(field->name, "'{}' is not supported: {}", field->name, field->instead);
}

Checked check_together(const SpeechRequest& request) {
  if (request.input.empty()) return refuse("input", "'input' is missing or empty; give the text to be spoken");
  if (request.events && request.whole)
    return refuse("stream", "'stream' false and 'stream_format' sse exclude each other; leave one of them out");
  if (request.format == AudioFormat::kOpus && (request.sample_rate_hz == 22050 || request.sample_rate_hz == 44100))
    return refuse("sample_rate", "opus has no {} Hz; choose 8000, 12000, 16000, 24000 or 48000 Hz",
                  request.sample_rate_hz);
  return {};
}

}  // namespace

SpeechRequestOrError parse_speech_request(std::string_view body, const SpeechLimits& limits) {
  const auto json = parse_json(
      body, "the body",
      {.max_bytes = body.size(), .max_depth = kMaxDepth, .max_values = kMaxValues, .max_bare_bytes = kMaxBareBytes});
  if (!json) {
    return tl::unexpected(
        HttpError{.status = 400, .message = json.error().message + "; give a JSON object", .code = "invalid_json"});
  }
  if (json->object() == nullptr)
    return tl::unexpected(
        HttpError{.status = 400, .message = "the body must be a JSON object", .code = "invalid_json"});
  SpeechRequest request;
  for (const JsonMember& member : *json->object())
    if (auto taken = take_field(member, limits, request); !taken) return tl::unexpected(std::move(taken).error());
  if (auto fits = check_together(request); !fits) return tl::unexpected(std::move(fits).error());
  return request;
}

std::vector<std::string> speech_fields() {
  std::vector<std::string> names;
  names.reserve(std::size(kFields));
  for (const Field& field : kFields) names.emplace_back(field.name);
  return names;
}

std::vector<std::string> unheeded_speech_fields() {
  std::vector<std::string> names;
  for (const Field& field : kFields)
    if (field.instead != nullptr) names.emplace_back(field.name);
  return names;
}

const char* media_type(AudioFormat format) {
  switch (format) {
    case AudioFormat::kWav: return "audio/wav";
    case AudioFormat::kPcm: return "audio/pcm";
    case AudioFormat::kFlac: return "audio/flac";
    case AudioFormat::kOpus: return "audio/ogg";
    case AudioFormat::kMp3: return "audio/mpeg";
    case AudioFormat::kAac: return "audio/aac";
  }
  return "application/octet-stream";
}

}  // namespace syrinx::server
