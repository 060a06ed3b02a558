#include "server/realtime/session_config.h"

#include <array>
#include <utility>

#include "base/in_quotes.h"
#include "engine/speech_session.h"

namespace syrinx::server::realtime {
namespace {

constexpr int kTelephoneRateHz = 8000;

struct FormatName {
  SoundFormat format;
  const char* released;  // `type` of the object
  const char* beta;
};
constexpr std::array kFormatNames = {
    FormatName{SoundFormat::kPcm, "audio/pcm", "pcm16"},
    FormatName{SoundFormat::kMuLaw, "audio/pcmu", "g711_ulaw"},
    FormatName{SoundFormat::kALaw, "audio/pcma", "g711_alaw"},
};

const FormatName& names_of(SoundFormat format) {
  size_t at = 0;
  while (kFormatNames[at].format != format) ++at;
  return kFormatNames[at];
}

// {"type": "audio/pcm", "rate": 24000}, or a beta name.
Checked take_format(const Json& value, const char* field, SoundFormat& format) {
  if (value.is_null()) return {};
  const Json* const type = value.find("type");
  const bool is_released = type != nullptr;
  const std::string* const name = is_released ? type->string() : value.string();
  if (name == nullptr)
    return refuse(field, "'{}' must be an object with a 'type', or a beta name such as pcm16", field);
  for (const FormatName& each : kFormatNames) {
    if (*name != (is_released ? each.released : each.beta)) continue;
    if (const Json* const rate = value.find("rate"); rate != nullptr && !rate->is_null())
      if (rate->whole() == nullptr || *rate->whole() != rate_hz(each.format))
        return refuse(field, "'{}' must have a 'rate' of {}, or none", field, rate_hz(each.format));
    format = each.format;
    return {};
  }
  return refuse(field, "'{}' is {}; choose audio/pcm, audio/pcmu or audio/pcma", field, in_quotes(*name));
}

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

Checked take_checked_voice(const Json& value, const char* field, const VoiceCheck& has_voice, std::string& voice) {
  std::string name;
  if (auto taken = take_voice(value, field, name); !taken || name.empty()) return taken;
  if (auto there = has_voice(name); !there) {
    there.error().param = field;
    return there;
  }
  voice = std::move(name);
  return {};
}

// The `output` of the released names' `audio`.
Checked take_output(const Json& value, const VoiceCheck& has_voice, OutputConfig& output) {
  if (value.is_null()) return {};
  if (value.object() == nullptr) return refuse("audio.output", "'audio.output' must be an object");
  for (const auto& [key, field] : *value.object()) {
    Checked taken;
    if (key == "format") taken = take_format(field, "audio.output.format", output.format);
    if (key == "voice") taken = take_checked_voice(field, "audio.output.voice", has_voice, output.voice);
    if (key == "speed") taken = take_number(field, "audio.output.speed", 0.25, 4, output.speed);
    if (!taken) return taken;
  }
  return {};
}

Checked take_audio(const Json& value, const VoiceCheck& has_voice, OutputConfig& output) {
  if (value.is_null()) return {};
  if (value.object() == nullptr) return refuse("audio", "'audio' must be an object");
  const Json* const given = value.find("output");
  return given == nullptr ? Checked() : take_output(*given, has_voice, output);
}

Checked take_output_field(const JsonMember& member, const VoiceCheck& has_voice, OutputConfig& output) {
  const auto& [key, value] = member;
  if (key == "audio") return take_audio(value, has_voice, output);
  if (key == "output_modalities") return take_modalities(value, "output_modalities", output.is_spoken);
  if (key == "modalities") return take_modalities(value, "modalities", output.is_spoken);
  if (key == "voice") return take_checked_voice(value, "voice", has_voice, output.voice);
  if (key == "output_audio_format") return take_format(value, "output_audio_format", output.format);
  if (key == "speed") return take_number(value, "speed", 0.25, 4, output.speed);
  return {};
}

}  // namespace

int rate_hz(SoundFormat format) { return format == SoundFormat::kPcm ? kSpeechRateHz : kTelephoneRateHz; }

const char* beta_format_name(SoundFormat format) { return names_of(format).beta; }

Checked update_output(const Json& fields, const VoiceCheck& has_voice, OutputConfig& output) {
  OutputConfig changed = output;
  for (const JsonMember& member : *fields.object())
    if (auto taken = take_output_field(member, has_voice, changed); !taken) return taken;
  output = std::move(changed);
  return {};
}

Checked update_session(const Json& fields, const VoiceCheck& has_voice, SessionConfig& config) {
  SessionConfig changed = config;
  if (auto taken = update_output(fields, has_voice, changed.output); !taken) return taken;
  if (const Json* const given = fields.find("instructions"); given != nullptr)
    if (auto taken = take_text(*given, "instructions", changed.instructions, kMaxInstructionBytes); !taken)
      return taken;
  if (const Json* const type = fields.find("type"); type != nullptr && !type->is_null())
    if (type->string() == nullptr || *type->string() != "realtime")
      return refuse("session.type", "'session.type' must be realtime");
  config = std::move(changed);
  return {};
}

Json output_json(const OutputConfig& output) {
  Json format, json;
  format.set("type", names_of(output.format).released);
  if (output.format == SoundFormat::kPcm) format.set("rate", rate_hz(output.format));
  json.set("format", std::move(format));
  json.set("voice", output.voice.empty() ? Json() : Json(output.voice));
  return json.set("speed", output.speed);
}

Json modalities_json(const OutputConfig& output, Dialect dialect) {
  Json::Array list;
  if (output.is_spoken) list.emplace_back("audio");
  if (!output.is_spoken || dialect == Dialect::kBeta) list.emplace_back("text");
  return list;
}

Json session_json(const SessionConfig& config, const std::string& model, Dialect dialect) {
  Json json;
  json.set("object", "realtime.session").set("model", model).set("instructions", config.instructions);
  if (dialect == Dialect::kBeta) {
    json.set("modalities", modalities_json(config.output, dialect));
    json.set("voice", config.output.voice.empty() ? Json() : Json(config.output.voice));
    json.set("output_audio_format", beta_format_name(config.output.format));
    return json.set("speed", config.output.speed);
  }
  json.set("type", "realtime").set("output_modalities", modalities_json(config.output, dialect));
  Json audio;
  audio.set("output", output_json(config.output));
  return json.set("audio", std::move(audio));
}

}  // namespace syrinx::server::realtime
