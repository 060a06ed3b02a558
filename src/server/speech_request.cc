#include "server/speech_request.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "server/json_fields.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxDepth = 2;  // {"voice": {"id": ...}}
constexpr std::array kRates = {8000, 12000, 16000, 22050, 24000, 44100, 48000};

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
  return refuse("instructions",
                "'instructions' cannot be heeded: no model of this server takes them; leave them out, or have the "
                "operator set ignore_instructions");
}

Checked take_format(const Json& value, SpeechRequest& request) {
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

Checked take_stream_format(const Json& value, SpeechRequest& request) {
  std::string name;
  if (auto taken = take_text(value, "stream_format", name); !taken) return taken;
  if (name != "" && name != "audio" && name != "sse")
    return refuse("stream_format", "'stream_format' is {}; choose audio or sse", in_quotes(name));
  request.events = name == "sse";
  return {};
}

Checked take_seed(const Json& value, SpeechRequest& request) {
  if (value.is_null()) return {};
  if (value.whole() == nullptr || *value.whole() < 0)
    return refuse("seed", "'seed' must be a whole number that is not less than zero");
  request.seed = static_cast<uint64_t>(*value.whole());
  return {};
}

Checked take_rate(const Json& value, SpeechRequest& request) {
  if (value.is_null()) return {};
  if (value.whole() == nullptr || std::find(kRates.begin(), kRates.end(), *value.whole()) == kRates.end())
    return refuse("sample_rate", "'sample_rate' must be 8000, 12000, 16000, 22050, 24000, 44100 or 48000 Hz");
  request.sample_rate_hz = static_cast<int>(*value.whole());
  return {};
}

Checked take_field(const JsonMember& member, const SpeechLimits& limits, SpeechRequest& request) {
  const auto& [key, value] = member;
  if (key == "input") return take_input(value, limits, request);
  if (key == "model") return take_text(value, "model", request.model);
  if (key == "voice") return take_voice(value, "voice", request.voice);
  if (key == "instructions") return take_instructions(value, limits, request);
  if (key == "response_format") return take_format(value, request);
  if (key == "speed") return take_number(value, "speed", 0.25, 4, request.speed);
  if (key == "stream_format") return take_stream_format(value, request);
  if (key == "stream") {
    bool stream = true;
    auto taken = take_flag(value, "stream", stream);
    request.whole = !stream;
    return taken;
  }
  if (key == "seed") return take_seed(value, request);
  if (key == "sample_rate") return take_rate(value, request);
  if (key == "temperature") {
    double temperature = 0;
    auto taken = take_number(value, "temperature", 0, 2, temperature);
    if (taken && !value.is_null()) request.temperature = temperature;
    return taken;
  }
  return tl::unexpected(HttpError{
      .status = 400,
      .message = fmt::format("there is no field {}; a request may have input, model, voice, instructions, "
                             "response_format, speed, stream_format, stream, seed, sample_rate and temperature",
                             in_quotes(key)),
      .param = shortened(key),
      .code = "unknown_parameter"});
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
  const auto json = parse_json(body, "the body", {.max_bytes = body.size(), .max_depth = kMaxDepth});
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
