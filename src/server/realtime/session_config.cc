#include "server/realtime/session_config.h"

#include <utility>

namespace syrinx::server::realtime {
namespace {

constexpr int64_t kMaxOutputTokens = 4096;  // as OpenAI's interface has it

Json tokens_json(int64_t tokens) { return tokens > 0 ? Json(tokens) : Json("inf"); }

// ["audio"], ["text"] or, as the beta names have it, both.
Checked take_modalities(const Json& value, const char* field, bool& is_spoken) {
  if (value.is_null()) return {};
  const auto bad = [&] { return refuse(field, "'{}' must be a list with \"audio\", \"text\" or both", field); };
  if (value.array() == nullptr || value.array()->empty()) return bad();
  bool spoken = false;
  for (const Json& each : *value.array()) {
    if (each.string() == nullptr || (*each.string() != "audio" && *each.string() != "text")) return bad();
    spoken = spoken || *each.string() == "audio";
  }
  is_spoken = spoken;
  return {};
}

Checked take_checked_voice(const Json& value, const char* field, const OutputChecks& checks, std::string& voice) {
  std::string name;
  if (auto taken = take_voice(value, field, name); !taken || name.empty()) return taken;
  if (auto there = checks.voice(name); !there) {
    there.error().param = field;
    return there;
  }
  voice = std::move(name);
  return {};
}

Checked take_speed(const Json& value, const char* field, const OutputChecks& checks, OutputConfig& output) {
  double asked = output.speed;
  if (auto taken = take_number(value, field, 0.25, 4, asked); !taken) return taken;
  if (asked == 1 || checks.has_speed) {
    output.speed = asked;
    return {};
  }
  if (checks.strict)
    return refuse(field, "'{}' must be 1, or left out: the model speaks at the pace of its voice", field);
  output.ignored.emplace_back(field);
  return {};
}

// The `output` of the released names' `audio`.
Checked take_output(const Json& value, const OutputChecks& checks, OutputConfig& output) {
  if (value.is_null()) return {};
  if (value.object() == nullptr) return refuse("audio.output", "'audio.output' must be an object");
  for (const auto& [key, field] : *value.object()) {
    Checked taken;
    if (key == "format") taken = take_format(field, "audio.output.format", output.format);
    if (key == "voice") taken = take_checked_voice(field, "audio.output.voice", checks, output.voice);
    if (key == "speed") taken = take_speed(field, "audio.output.speed", checks, output);
    if (!taken) return taken;
  }
  return {};
}

Checked take_audio(const Json& value, const OutputChecks& checks, OutputConfig& output) {
  if (value.is_null()) return {};
  if (value.object() == nullptr) return refuse("audio", "'audio' must be an object");
  const Json* const given = value.find("output");
  return given == nullptr ? Checked() : take_output(*given, checks, output);
}

Checked take_output_field(const JsonMember& member, const OutputChecks& checks, OutputConfig& output) {
  const auto& [key, value] = member;
  if (key == "audio") return take_audio(value, checks, output);
  if (key == "output_modalities") return take_modalities(value, "output_modalities", output.is_spoken);
  if (key == "modalities") return take_modalities(value, "modalities", output.is_spoken);
  if (key == "voice") return take_checked_voice(value, "voice", checks, output.voice);
  if (key == "output_audio_format") return take_format(value, "output_audio_format", output.format);
  if (key == "speed") return take_speed(value, "speed", checks, output);
  return {};
}

}  // namespace

Checked update_output(const Json& fields, const OutputChecks& checks, OutputConfig& output) {
  OutputConfig changed = output;
  changed.ignored.clear();
  for (const JsonMember& member : *fields.object())
    if (auto taken = take_output_field(member, checks, changed); !taken) return taken;
  output = std::move(changed);
  return {};
}

Checked take_max_tokens(const Json& value, const char* field, int64_t& tokens) {
  if (value.is_null()) return {};
  const bool is_endless = value.string() != nullptr && *value.string() == "inf";
  const bool is_number = value.whole() != nullptr && *value.whole() >= 1 && *value.whole() <= kMaxOutputTokens;
  if (!is_endless && !is_number)
    return refuse(field, "'{}' must be a whole number from 1 to {}, or \"inf\"", field, kMaxOutputTokens);
  tokens = is_endless ? 0 : *value.whole();
  return {};
}

Checked update_session(const Json& fields, const OutputChecks& output_checks, const InputChecks& input_checks,
                       SessionConfig& config) {
  SessionConfig changed = config;
  changed.input.ignored.clear();
  if (auto taken = update_output(fields, output_checks, changed.output); !taken) return taken;
  if (const Json* const audio = fields.find("audio"); audio != nullptr)
    if (const Json* const input = audio->find("input"); input != nullptr)
      if (auto taken = take_input(*input, input_checks, changed.input); !taken) return taken;
  for (const JsonMember& member : *fields.object())
    if (auto taken = take_beta_input(member, input_checks, changed.input); !taken) return taken;
  if (const Json* const given = fields.find("instructions"); given != nullptr)
    if (auto taken = take_text(*given, "instructions", changed.instructions, kMaxInstructionBytes); !taken)
      return taken;
  for (const char* const key : {"max_output_tokens", "max_response_output_tokens"})
    if (const Json* const given = fields.find(key); given != nullptr)
      if (auto taken = take_max_tokens(*given, key, changed.max_output_tokens); !taken) return taken;
  if (const Json* const type = fields.find("type"); type != nullptr && !type->is_null()) {
    if (type->string() == nullptr || (*type->string() != "realtime" && *type->string() != "transcription"))
      return refuse("session.type", "'session.type' must be realtime or transcription");
    changed.is_transcription = *type->string() == "transcription";
  }
  // Such a session exists to transcribe; with null it would send nothing.
  if (changed.is_transcription && input_checks.can_hear && !changed.input.transcription)
    changed.input.transcription.emplace();
  config = std::move(changed);
  return {};
}

Json output_json(const OutputConfig& output) {
  Json json;
  json.set("format", format_json(output.format));
  json.set("voice", output.voice.empty() ? Json() : Json(output.voice));
  return json.set("speed", output.speed);
}

Json modalities_json(const OutputConfig& output, Dialect dialect) {
  Json::Array list;
  if (output.is_spoken) list.emplace_back("audio");
  if (!output.is_spoken || dialect == Dialect::kBeta) list.emplace_back("text");
  return list;
}

std::vector<std::string> ignored_fields(const SessionConfig& config) {
  std::vector<std::string> fields = config.output.ignored;
  fields.insert(fields.end(), config.input.ignored.begin(), config.input.ignored.end());
  return fields;
}

Json session_json(const SessionConfig& config, const std::string& model, Dialect dialect) {
  Json json, audio;
  json.set("object", config.is_transcription ? "realtime.transcription_session" : "realtime.session");
  if (!config.is_transcription) json.set("model", model).set("instructions", config.instructions);
  if (const auto ignored = ignored_fields(config); !ignored.empty())
    json.set("ignored", Json::Array(ignored.begin(), ignored.end()));  // which OpenAI's sessions do not know
  if (dialect == Dialect::kBeta) {
    add_beta_input(config.input, json);
    if (config.is_transcription) return json;
    json.set("modalities", modalities_json(config.output, dialect));
    json.set("voice", config.output.voice.empty() ? Json() : Json(config.output.voice));
    json.set("output_audio_format", beta_format_name(config.output.format));
    json.set("max_response_output_tokens", tokens_json(config.max_output_tokens));
    return json.set("speed", config.output.speed);
  }
  json.set("type", config.is_transcription ? "transcription" : "realtime");
  audio.set("input", input_json(config.input));
  if (!config.is_transcription) {
    json.set("output_modalities", modalities_json(config.output, dialect));
    json.set("max_output_tokens", tokens_json(config.max_output_tokens));
    audio.set("output", output_json(config.output));
  }
  return json.set("audio", std::move(audio));
}

}  // namespace syrinx::server::realtime
