#include "server/realtime/input_config.h"

#include <array>
#include <utility>

#include "base/in_quotes.h"
#include "server/settings/model_id.h"
#include "store/foreign_names.h"
#include "text/language.h"

namespace syrinx::server::realtime {
namespace {

constexpr double kMinThreshold = 0.01;  // below it no window is surely silent, so a turn would not end

struct Eagerness {
  const char* name;
  double silence_ms;
};
constexpr std::array kEagerness = {Eagerness{"auto", 700}, Eagerness{"low", 1200}, Eagerness{"medium", 700},
                                   Eagerness{"high", 400}};

Checked take_eagerness(const Json& value, std::string& eagerness) {
  std::string name = eagerness;
  if (auto taken = take_text(value, "turn_detection.eagerness", name); !taken) return taken;
  for (const Eagerness& each : kEagerness) {
    if (name != each.name) continue;
    eagerness = std::move(name);
    return {};
  }
  return refuse("turn_detection.eagerness", "'turn_detection.eagerness' must be low, medium, high or auto");
}

Checked take_timeout(const Json& value, std::optional<double>& timeout_ms) {
  double ms = -1;
  if (auto taken = take_number(value, "turn_detection.idle_timeout_ms", 5000, 30000, ms); !taken) return taken;
  if (ms >= 0) timeout_ms = ms;
  return {};
}

Checked take_turn_field(const JsonMember& member, TurnDetection& turns) {
  const auto& [key, value] = member;
  if (key == "create_response") return take_flag(value, "turn_detection.create_response", turns.create_response);
  if (key == "interrupt_response")
    return take_flag(value, "turn_detection.interrupt_response", turns.interrupt_response);
  if (turns.is_semantic) return key == "eagerness" ? take_eagerness(value, turns.eagerness) : Checked();
  if (key == "threshold") return take_number(value, "turn_detection.threshold", kMinThreshold, 1, turns.threshold);
  if (key == "prefix_padding_ms")
    return take_number(value, "turn_detection.prefix_padding_ms", 0, 5000, turns.prefix_padding_ms);
  if (key == "silence_duration_ms")
    return take_number(value, "turn_detection.silence_duration_ms", 0, 10000, turns.silence_duration_ms);
  return key == "idle_timeout_ms" ? take_timeout(value, turns.idle_timeout_ms) : Checked();
}

Checked take_turns(const Json& value, const InputChecks& checks, InputConfig& input) {
  input.is_turns_given = true;
  if (value.is_null()) {
    input.turns.reset();
    return {};
  }
  const Json* const type = value.find("type");
  const std::string* const name = type != nullptr ? type->string() : nullptr;
  if (name == nullptr || (*name != "server_vad" && *name != "semantic_vad"))
    return refuse("turn_detection",
                  "'turn_detection' must be null, or an object whose 'type' is server_vad or semantic_vad");
  TurnDetection changed{.is_semantic = *name == "semantic_vad"};
  for (const JsonMember& member : *value.object())
    if (auto taken = take_turn_field(member, changed); !taken) return taken;
  if (!checks.can_hear) return {};
  if (!checks.can_detect)
    return refuse("turn_detection",
                  "no voice activity model is installed, so turns cannot be detected; set 'turn_detection' to null and "
                  "commit, or have the operator run `syrinx pull silero-vad`");
  input.turns = std::move(changed);
  return {};
}

Checked take_texts(const Json& value, const char* field, size_t most, std::vector<std::string>& texts) {
  if (value.is_null()) return {};
  if (value.array() == nullptr || value.array()->size() > most)
    return refuse(field, "'{}' must be a list of at most {} texts", field, most);
  for (const Json& each : *value.array()) {
    std::string text;
    if (auto taken = take_text(each, field, text); !taken) return taken;
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return {};
}

Checked take_transcription_field(const JsonMember& member, Transcription& transcription) {
  const auto& [key, value] = member;
  if (key == "model") return take_text(value, "transcription.model", transcription.model);
  if (key == "language") return take_text(value, "transcription.language", transcription.language);
  if (key == "languages") return take_texts(value, "transcription.languages", kMaxLanguages, transcription.languages);
  if (key == "keywords") return take_texts(value, "transcription.keywords", kMaxKeywords, transcription.keywords);
  if (key == "prompt") return take_text(value, "transcription.prompt", transcription.prompt, size_t{16} << 10);
  return {};
}

// `name` is the client's for it.
Checked take_transcription(const Json& value, const char* name, const InputChecks& checks, InputConfig& input) {
  if (value.is_null()) {
    input.transcription.reset();
    return {};
  }
  if (value.object() == nullptr) return refuse("transcription", "'transcription' must be null or an object");
  Transcription changed;
  for (const JsonMember& member : *value.object())
    if (auto taken = take_transcription_field(member, changed); !taken) return taken;
  if (changed.language.empty()) changed.language = text::language_expected(changed.languages);
  if (!checks.can_hear) return {};
  if (auto checked = checks.transcription(changed); !checked) return checked;
  for (const std::string& field : changed.ignored) input.ignored.push_back(fmt::format("{}.{}", name, field));
  input.transcription = std::move(changed);
  return {};
}

// Nothing here reduces noise; OpenAI's guides have clients ask for it.
Checked check_noise_reduction(const Json& value) {
  if (value.is_null()) return {};
  const Json* const type = value.find("type");
  const std::string* const name = type != nullptr ? type->string() : nullptr;
  if (name != nullptr && (*name == "near_field" || *name == "far_field")) return {};
  return refuse("noise_reduction",
                "'noise_reduction' must be null, or an object whose 'type' is near_field or far_field");
}

Json transcription_json(const InputConfig& input) {
  if (!input.transcription) return {};
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json json;
  json.set("model", or_null(input.transcription->model)).set("language", or_null(input.transcription->language));
  json.set("prompt", input.transcription->prompt);
  if (input.transcription->keywords.empty()) return json;  // which OpenAI's sessions do not know
  Json::Array keywords;
  for (const std::string& keyword : input.transcription->keywords) keywords.push_back(keyword);
  return json.set("keywords", std::move(keywords));
}

Json turns_json(const InputConfig& input) {
  if (!input.turns) return {};
  const TurnDetection& turns = *input.turns;
  Json json;
  json.set("type", turns.is_semantic ? "semantic_vad" : "server_vad");
  if (turns.is_semantic) {
    json.set("eagerness", turns.eagerness);
  } else {
    json.set("threshold", turns.threshold);
    json.set("prefix_padding_ms", static_cast<int64_t>(turns.prefix_padding_ms));
    json.set("silence_duration_ms", static_cast<int64_t>(turns.silence_duration_ms));
    json.set("idle_timeout_ms", turns.idle_timeout_ms ? Json(static_cast<int64_t>(*turns.idle_timeout_ms)) : Json());
  }
  json.set("create_response", turns.create_response);
  return json.set("interrupt_response", turns.interrupt_response);
}

}  // namespace

double TurnDetection::silence_ms() const {
  if (!is_semantic) return silence_duration_ms;
  for (const Eagerness& each : kEagerness)
    if (eagerness == each.name) return each.silence_ms;
  return silence_duration_ms;
}

std::optional<TurnDetection> default_turns(const InputConfig& input, const InputChecks& checks,
                                           std::string_view model) {
  const std::string_view heard_by = input.transcription ? std::string_view(input.transcription->model) : "";
  const bool commits =
      is_one_of(model, foreign_names("without-turns")) || is_one_of(heard_by, foreign_names("without-turns"));
  return checks.can_detect && !commits ? std::optional(TurnDetection{}) : std::nullopt;
}

Checked take_input(const Json& value, const InputChecks& checks, InputConfig& input) {
  if (value.is_null()) return {};
  if (value.object() == nullptr) return refuse("audio.input", "'audio.input' must be an object");
  for (const auto& [key, field] : *value.object()) {
    Checked taken;
    if (key == "format") taken = take_format(field, "audio.input.format", input.format);
    if (key == "transcription") taken = take_transcription(field, "audio.input.transcription", checks, input);
    if (key == "turn_detection") taken = take_turns(field, checks, input);
    if (key == "noise_reduction") taken = check_noise_reduction(field);
    if (taken) continue;
    if (!taken.error().param.starts_with("audio.")) taken.error().param = "audio.input." + taken.error().param;
    return taken;
  }
  return {};
}

Checked take_beta_input(const JsonMember& member, const InputChecks& checks, InputConfig& input) {
  const auto& [key, value] = member;
  Checked taken;
  if (key == "input_audio_format") return take_format(value, "input_audio_format", input.format);
  if (key == "turn_detection") return take_turns(value, checks, input);
  if (key == "input_audio_transcription") taken = take_transcription(value, "input_audio_transcription", checks, input);
  if (key == "input_audio_noise_reduction") taken = check_noise_reduction(value);
  if (!taken) taken.error().param = "input_audio_" + taken.error().param;
  return taken;
}

Json input_json(const InputConfig& input) {
  Json json;
  json.set("format", format_json(input.format)).set("transcription", transcription_json(input));
  return json.set("noise_reduction", Json()).set("turn_detection", turns_json(input));
}

void add_beta_input(const InputConfig& input, Json& session) {
  session.set("input_audio_format", beta_format_name(input.format));
  session.set("input_audio_transcription", transcription_json(input)).set("turn_detection", turns_json(input));
}

}  // namespace syrinx::server::realtime
