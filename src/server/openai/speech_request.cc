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
constexpr double kMaxVolume = 10;
constexpr std::array kRates = {8000, 12000, 16000, 22050, 24000, 44100, 48000};

Checked take_input(const Json& value, const SpeechLimits& limits, SpeechRequest& request) {
  if (value.string() == nullptr) return refuse("input", "'input' must be the text to be spoken");
  request.input = without_half_characters(*value.string());
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

Checked take_format(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  std::string name;
  if (auto taken = take_text(value, "response_format", name); !taken) return taken;
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
  if (name != "audio" && name != "sse")
    return refuse("stream_format", "'stream_format' is {}; choose audio or sse", in_quotes(name));
  request.events = name == "sse";
  return {};
}

Checked take_seed(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  const auto seed = value.natural();
  if (!seed) return refuse("seed", "'seed' must be a whole number from 0 to {}", UINT64_MAX);
  request.seed = *seed;
  return {};
}

Checked take_rate(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  if (value.whole() == nullptr || std::find(kRates.begin(), kRates.end(), *value.whole()) == kRates.end())
    return refuse("sample_rate", "'sample_rate' must be 8000, 12000, 16000, 22050, 24000, 44100 or 48000 Hz");
  request.sample_rate_hz = static_cast<int>(*value.whole());
  return {};
}

Checked take_volume(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  return take_number(value, "volume_multiplier", 0, kMaxVolume, request.volume);
}

Checked take_stream(const Json& value, const SpeechLimits& /*limits*/, SpeechRequest& request) {
  bool stream = true;
  auto taken = take_flag(value, "stream", stream);
  request.whole = !stream;
  return taken;
}

struct Field {
  const char* name;
  Checked (*take)(const Json& value, const SpeechLimits& limits, SpeechRequest& request);
};

constexpr std::array kFields = {
    Field{"input", take_input},
    Field{"model", [](const Json& value, auto&, auto& request) { return take_text(value, "model", request.model); }},
    Field{"voice", [](const Json& value, auto&, auto& request) { return take_voice(value, "voice", request.voice); }},
    Field{"language",
          [](const Json& value, auto&, auto& request) { return take_text(value, "language", request.language); }},
    Field{"response_format", take_format},
    Field{"stream_format", take_stream_format},
    Field{"stream", take_stream},
    Field{"seed", take_seed},
    Field{"sample_rate", take_rate},
    Field{"volume_multiplier", take_volume},
};

// Fields of other servers, and why no model here has them.
struct ForeignField {
  const char *name, *reason;
};
constexpr std::array kForeignFields = {
    ForeignField{"max_new_tokens", "no model of this server counts its sound in tokens"},
    ForeignField{
        "ref_audio",
        "a request brings no recording; upload it as a voice (POST /v1/audio/voices), and name that as 'voice'"},
    ForeignField{"ref_text", "voices are made of a recording without its words"},
    ForeignField{"task_type", "no model of this server has more than one task"},
    ForeignField{"lang_code", "the voice decides the pronunciation"},
    ForeignField{"return_download_link", "answers are not kept for a download"},
    ForeignField{"download_format", "answers are not kept for a download"},
    ForeignField{"normalization_options", "texts are always read in the same way"},
};

// An option of some family: of the first that has it, as all that have it mean the same.
const Knob* find_option(std::string_view name) {
  for (const KnobHolder& family : speech_knobs())
    if (const Knob* const knob = find_knob(family.knobs, name); knob != nullptr && knob->use == Knob::Use::kRequest)
      return knob;
  return nullptr;
}

std::string taken_names() {
  std::string names;
  for (const std::string& name : speech_fields())
    if (std::none_of(kForeignFields.begin(), kForeignFields.end(),
                     [&](const auto& field) { return field.name == name; }))
      names += (names.empty() ? "" : ", ") + name;
  return names;
}

Checked ignore(const char* field, const std::string& reason, const SpeechLimits& limits, SpeechRequest& request) {
  if (limits.strict) return refuse(field, "'{}' is not supported: {}", field, reason);
  request.ignored.emplace_back(field);
  return {};
}

std::optional<KnobValue> knob_value(const Json& value) {
  if (value.boolean() != nullptr) return *value.boolean() ? 1.0 : 0.0;
  if (value.whole() != nullptr) return static_cast<double>(*value.whole());
  if (value.real() != nullptr) return *value.real();
  return value.string() != nullptr ? std::optional<KnobValue>(*value.string()) : std::nullopt;
}

// A value out of range is refused whichever family would take it.
Checked take_option(const Knob& knob, const Json& json, const SpeechLimits& limits, SpeechRequest& request) {
  const bool is_flag = knob.kind == Knob::Kind::kFlag;
  const std::optional<KnobValue> value = knob_value(json);
  if (!value || is_flag != (json.boolean() != nullptr))
    return refuse(knob.name, "'{}' must be {}", knob.name,
                  is_flag                          ? "true or false"
                  : knob.kind == Knob::Kind::kText ? "a text"
                                                   : "a number");
  if (const Status checked = check_knob_value(knob, *value); !checked)
    return refuse(knob.name, "{}", checked.error().message);
  if (is_initial(knob, *value)) return {};
  const bool is_lacking = std::find(limits.lacking.begin(), limits.lacking.end(), knob.name) != limits.lacking.end();
  if (is_lacking)
    return ignore(knob.name, fmt::format("this model takes no '{}'; leave it out", knob.name), limits, request);
  if (limits.family == nullptr || has_knob(*limits.family, knob.name)) {
    request.knobs.set(knob.name, *value);
    return {};
  }
  const Status lacking = check_knobs(Knobs{{knob.name, *value}}, *limits.family);
  return ignore(knob.name, lacking ? std::string() : lacking.error().message, limits, request);
}

// As if the field were not there.
bool is_absent(const Json& value) { return value.is_null() || (value.string() != nullptr && value.string()->empty()); }

// Asks for nothing in any field of another server.
bool is_off(const Json& value) {
  if (value.boolean() != nullptr) return !*value.boolean();
  return (value.array() != nullptr && value.array()->empty()) || (value.object() != nullptr && value.object()->empty());
}

Checked take_field(const JsonMember& member, const SpeechLimits& limits, SpeechRequest& request) {
  if (is_absent(member.value)) return {};
  const auto is_it = [&](const auto& known) { return known.name == member.key; };
  if (const auto field = std::find_if(kFields.begin(), kFields.end(), is_it); field != kFields.end())
    return field->take(member.value, limits, request);
  if (const Knob* const knob = find_option(member.key)) return take_option(*knob, member.value, limits, request);
  const auto foreign = std::find_if(kForeignFields.begin(), kForeignFields.end(), is_it);
  if (foreign == kForeignFields.end())
    return tl::unexpected(HttpError{
        .status = 400,
        .message = fmt::format("there is no field {}; a request may have {}", in_quotes(member.key), taken_names()),
        .param = shortened(member.key),
        .code = "unknown_parameter"});
  if (is_off(member.value)) return {};
  return ignore(foreign->name, foreign->reason + std::string("; leave it out"), limits, request);
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
  if (const auto at = text::find_invalid(body))
    return tl::unexpected(HttpError{
        .status = 400,
        .message = fmt::format("byte {} of the body is not UTF-8; a text may have been cut within a character", *at),
        .code = "invalid_json"});
  const auto json = parse_json(body, "the body",
                               {.max_bytes = body.size(),
                                .max_depth = kMaxDepth,
                                .max_values = kMaxValues,
                                .max_bare_bytes = kMaxBareBytes,
                                .takes_lone_surrogates = true});
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
  names.reserve(std::size(kFields) + std::size(kForeignFields));
  for (const Field& field : kFields) names.emplace_back(field.name);
  for (const KnobHolder& family : speech_knobs())
    for (const Knob& knob : family.knobs)
      if (knob.use == Knob::Use::kRequest && std::find(names.begin(), names.end(), knob.name) == names.end())
        names.emplace_back(knob.name);
  for (const ForeignField& field : kForeignFields) names.emplace_back(field.name);
  return names;
}

std::vector<std::string> unheeded_speech_fields() {
  std::vector<std::string> names;
  names.reserve(std::size(kForeignFields));
  for (const ForeignField& field : kForeignFields) names.emplace_back(field.name);
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
