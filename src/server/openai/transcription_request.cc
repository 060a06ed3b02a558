#include "server/openai/transcription_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "base/in_quotes.h"
#include "base/json.h"
#include "text/language.h"

namespace syrinx::server {
namespace {

constexpr size_t kMaxTextBytes = 256;  // of a field that may be heeded, but the file
constexpr size_t kMaxKeywords = 32;

using Taken = tl::expected<void, HttpError>;
using Take = Taken (*)(const FormPart& part, const TranscriptionRules& rules, TranscriptionRequest& request);

Taken take_file(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  if (part.content.empty()) return refuse("file", "'file' is empty; send a recording");
  request.file = part.content;
  return {};
}

Taken take_model(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  request.model = part.content;
  return {};
}

Taken take_language(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  request.options.language = part.content;
  return {};
}

Taken take_expected(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  request.languages.emplace_back(part.content);
  return {};
}

// Refused where the server is strict; else named in the answer.
Taken ignore(const char* field, const char* reason, const TranscriptionRules& rules, TranscriptionRequest& request) {
  if (rules.strict)
    return refuse(field, "'{}' is not supported: {}; leave it out, or have the operator switch strict off", field,
                  reason);
  if (std::find(request.ignored.begin(), request.ignored.end(), field) == request.ignored.end())
    request.ignored.emplace_back(field);
  return {};
}

Taken take_keyword(const FormPart& part, const TranscriptionRules& rules, TranscriptionRequest& request) {
  if (request.keywords.size() == kMaxKeywords)
    return refuse("keywords", "'keywords' has more than {} words; send fewer", kMaxKeywords);
  if (!rules.takes_keywords) return ignore("keywords", "the model cannot favour words", rules, request);
  request.keywords.emplace_back(part.content);
  return {};
}

Taken take_format(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  static constexpr std::array<std::pair<std::string_view, TranscriptionFormat>, 5> kFormats = {
      {{"json", TranscriptionFormat::kJson},
       {"text", TranscriptionFormat::kText},
       {"srt", TranscriptionFormat::kSrt},
       {"vtt", TranscriptionFormat::kVtt},
       {"verbose_json", TranscriptionFormat::kVerboseJson}}};
  const auto format =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& known) { return known.first == part.content; });
  if (part.content == "diarized_json")
    return refuse("response_format", "'diarized_json' cannot be made: no model of this server tells speakers apart");
  if (format == kFormats.end())
    return refuse("response_format", "'response_format' is {}; choose json, text, srt, vtt or verbose_json",
                  in_quotes(part.content));
  request.format = format->second;
  return {};
}

// The one of the first family that has it, as all that have it mean the same.
const Knob* find_option(std::string_view name) {
  for (const KnobHolder& family : recognition_knobs())
    if (const Knob* const knob = find_knob(family.knobs, name); knob != nullptr && fits_form(*knob)) return knob;
  return nullptr;
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const KnobHolder& family : recognition_knobs())
    for (const Knob& knob : family.knobs)
      if (fits_form(knob) && std::find(names.begin(), names.end(), knob.name) == names.end())
        names.emplace_back(knob.name);
  return names;
}

// A value out of range is refused whichever family would take it.
Taken take_option(const Knob& knob, const FormPart& part, const TranscriptionRules& rules,
                  TranscriptionRequest& request) {
  KnobValue value = std::string(part.content);
  if (knob.kind != Knob::Kind::kText) {
    double number = 0;
    const char* const end = part.content.data() + part.content.size();
    const auto [behind, error] = std::from_chars(part.content.data(), end, number);
    if (error != std::errc() || behind != end)
      return refuse(knob.name, "'{}' must be a number from {} to {}", knob.name, knob.least, knob.most);
    value = number;
  }
  if (const Status checked = check_knob_value(knob, value); !checked)
    return refuse(knob.name, "{}", checked.error().message);
  if (is_initial(knob, value)) return {};
  const bool is_lacking = std::find(rules.unheeded.begin(), rules.unheeded.end(), knob.name) != rules.unheeded.end();
  if (is_lacking || (rules.family != nullptr && !has_knob(*rules.family, knob.name)))
    return ignore(knob.name, "the model has no such option", rules, request);
  request.options.knobs.set(knob.name, std::move(value));
  return {};
}

Taken take_granularity(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  if (part.content == "word")
    request.options.words = true;
  else if (part.content == "segment")
    request.segments = true;
  else
    return refuse("timestamp_granularities[]", "'timestamp_granularities[]' is {}; choose word or segment",
                  in_quotes(part.content));
  return {};
}

Taken take_stream(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  request.events = part.content == "true" || part.content == "1" || part.content == "True";
  if (!request.events && part.content != "false" && part.content != "0" && part.content != "False")
    return refuse("stream", "'stream' must be true or false");
  return {};
}

Taken take_channels(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  request.separate_channels = part.content == "separate";
  if (!request.separate_channels && part.content != "mixed")
    return refuse("channels", "'channels' is {}; choose mixed or separate", in_quotes(part.content));
  return {};
}

Taken take_include(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& /*request*/) {
  if (part.content == "logprobs") return {};  // may be missing of an answer, and is with every model here
  return refuse("include[]", "{} cannot be included in an answer; leave 'include[]' out", in_quotes(part.content));
}

Taken take_speakers(const FormPart& part, const TranscriptionRules& rules, TranscriptionRequest& request) {
  const bool is_name = part.name.starts_with("known_speaker_names");
  return ignore(is_name ? "known_speaker_names" : "known_speaker_references",
                "no model of this server tells speakers apart", rules, request);
}

Taken take_voice_number(const Json& value, const std::string& key, std::optional<double>& number) {
  if (value.whole() != nullptr) number = static_cast<double>(*value.whole());
  if (value.real() != nullptr) number = *value.real();
  if (!number) return refuse("chunking_strategy", "'{}' of 'chunking_strategy' must be a number", key);
  return {};
}

// Null: 'chunking_strategy' has no such number.
std::optional<double>* voice_number(VoiceActivityChanges& voice, std::string_view key) {
  if (key == "threshold") return &voice.threshold;
  if (key == "prefix_padding_ms") return &voice.speech_pad_ms;
  return key == "silence_duration_ms" ? &voice.min_silence_ms : nullptr;
}

// "auto", or {"type": "server_vad", ...}: what counts as speech.
Taken take_chunking(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  if (part.content == "auto") return {};
  const auto json = parse_json(part.content, "'chunking_strategy'", {.max_bytes = kMaxTextBytes, .max_depth = 1});
  const Json* const type = json ? json->find("type") : nullptr;
  if (type == nullptr || type->string() == nullptr || *type->string() != "server_vad")
    return refuse("chunking_strategy", "'chunking_strategy' must be auto, or a JSON object with the type server_vad");
  for (const auto& [key, value] : *json->object()) {
    if (key == "type") continue;
    std::optional<double>* const number = voice_number(request.options.voice, key);
    if (number == nullptr)
      return refuse("chunking_strategy",
                    "'chunking_strategy' has no {}; it may have type, threshold, "
                    "prefix_padding_ms and silence_duration_ms",
                    in_quotes(key));
    if (auto taken = take_voice_number(value, key, *number); !taken) return taken;
  }
  return {};
}

// The same in fields of their own, as OpenAI's Python client sends an object.
Taken take_chunking_type(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& /*request*/) {
  if (part.content == "server_vad" || part.content == "auto") return {};
  return refuse("chunking_strategy", "'chunking_strategy[type]' must be server_vad");
}

Taken take_chunking_number(const FormPart& part, const TranscriptionRules& /*rules*/, TranscriptionRequest& request) {
  const size_t begin = part.name.find('[') + 1;
  const std::string key = part.name.substr(begin, part.name.size() - 1 - begin);
  const auto json = parse_json(part.content, "'chunking_strategy'", {.max_bytes = kMaxTextBytes, .max_depth = 1});
  return take_voice_number(json.value_or(Json()), key, *voice_number(request.options.voice, key));
}

struct Field {
  std::string_view name;
  Take take;
  bool translated = false;  // also of translations
  bool several = false;     // may come more than once
  bool heeded = true;       // by some model
};

constexpr std::array kFields = {
    Field{"file", take_file, true},
    Field{"model", take_model, true},
    Field{"response_format", take_format, true},
    Field{"language", take_language},
    Field{"languages[]", take_expected, false, true},
    Field{"languages", take_expected, false, true},
    Field{"keywords[]", take_keyword, false, true},
    Field{"keywords", take_keyword, false, true},
    Field{"timestamp_granularities[]", take_granularity, false, true},
    Field{"timestamp_granularities", take_granularity, false, true},
    Field{"stream", take_stream},
    Field{"channels", take_channels},
    Field{"include[]", take_include, false, true, false},
    Field{"include", take_include, false, true, false},
    Field{"chunking_strategy", take_chunking},
    Field{"chunking_strategy[type]", take_chunking_type},
    Field{"chunking_strategy[threshold]", take_chunking_number},
    Field{"chunking_strategy[prefix_padding_ms]", take_chunking_number},
    Field{"chunking_strategy[silence_duration_ms]", take_chunking_number},
    Field{"known_speaker_names[]", take_speakers, false, true, false},
    Field{"known_speaker_names", take_speakers, false, true, false},
    Field{"known_speaker_references[]", take_speakers, false, true, false},
    Field{"known_speaker_references", take_speakers, false, true, false},
};

// "keywords" is "keywords[]", too.
bool is_short_name(const Field& field) {
  return std::any_of(kFields.begin(), kFields.end(),
                     [&](const Field& other) { return other.name == std::string(field.name) + "[]"; });
}

Taken take_part(const FormPart& part, const TranscriptionRules& rules, std::set<std::string_view>& seen,
                TranscriptionRequest& request) {
  const auto field =
      std::find_if(kFields.begin(), kFields.end(), [&](const Field& known) { return known.name == part.name; });
  if (part.content.empty() && part.name != "file") return {};  // as if it were not there
  if (const Knob* const knob = find_option(part.name)) {
    if (!seen.insert(knob->name).second) return refuse(knob->name, "'{}' is given twice; give it once", knob->name);
    return take_option(*knob, part, rules, request);
  }
  if (field == kFields.end() || (rules.translated && !field->translated))
    return tl::unexpected(
        HttpError{.status = 400,
                  .message = fmt::format("there is no field {}; a request may have file, model, {}{}",
                                         in_quotes(part.name), fmt::join(option_names(), ", "),
                                         rules.translated ? " and response_format"
                                                          : ", language, languages, keywords, response_format, "
                                                            "timestamp_granularities[], stream, channels and "
                                                            "chunking_strategy"),
                  .param = shortened(part.name),
                  .code = "unknown_parameter"});
  if (!seen.insert(field->name).second && !field->several)
    return refuse(part.name.c_str(), "'{}' is given twice; give it once", part.name);
  // The length of an ignored field does not matter: a shorter value would be as wrong.
  if (field->take != take_file && field->heeded && part.content.size() > kMaxTextBytes)
    return refuse(part.name.c_str(), "'{}' has {} bytes; give at most {}", part.name, part.content.size(),
                  kMaxTextBytes);
  return field->take(part, rules, request);
}

Taken check_together(const TranscriptionRequest& request) {
  if (request.file.empty()) return refuse("file", "'file' is missing; send a recording in it");
  const bool verbose = request.format == TranscriptionFormat::kVerboseJson;
  if (!verbose && (request.segments || request.options.words))
    return refuse("timestamp_granularities[]",
                  "'timestamp_granularities[]' needs the response_format verbose_json; choose that, or leave it out");
  if (request.events && request.format != TranscriptionFormat::kJson && request.format != TranscriptionFormat::kText)
    return refuse("stream", "'stream' gives events in place of srt, vtt and verbose_json; leave one of them out");
  if (request.events && request.separate_channels)
    return refuse("stream", "'stream' cannot tell separate channels in order of time; leave one of them out");
  return {};
}

}  // namespace

TranscriptionRequestOrError parse_transcription_request(const std::vector<FormPart>& parts,
                                                        const TranscriptionRules& rules) {
  TranscriptionRequest request;
  if (rules.translated) request.options.knobs.set("translate", 1.0);
  std::set<std::string_view> seen;
  for (const FormPart& part : parts)
    if (auto taken = take_part(part, rules, seen, request); !taken) return tl::unexpected(std::move(taken).error());
  if (auto fits = check_together(request); !fits) return tl::unexpected(std::move(fits).error());
  if (!request.options.words) request.segments = true;
  request.options.subtitles =
      request.format == TranscriptionFormat::kSrt || request.format == TranscriptionFormat::kVtt;
  const bool text_alone = request.format == TranscriptionFormat::kJson || request.format == TranscriptionFormat::kText;
  request.options.segment_times = !text_alone || request.separate_channels;
  if (!request.keywords.empty()) request.options.knobs.set("boost", request.keywords);
  if (request.options.language.empty()) request.options.language = text::language_expected(request.languages);
  return request;
}

std::vector<std::string> transcription_fields(bool translated) {
  std::vector<std::string> names = option_names();
  for (const Field& field : kFields)
    if (!is_short_name(field) && (field.translated || !translated)) names.emplace_back(field.name);
  return names;
}

std::vector<std::string> unheeded_transcription_fields() {
  std::vector<std::string> names;
  for (const Field& field : kFields)
    if (!is_short_name(field) && !field.heeded) names.emplace_back(field.name);
  return names;
}

}  // namespace syrinx::server
