#include "server/settings/modules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/in_quotes.h"
#include "server/settings/settings.h"

namespace syrinx::server {
namespace {

constexpr double kLongestKeepAliveS = 1e9;
constexpr size_t kMostNameBytes = 256;

// The key's setting in the short form.
struct Key {
  ModuleKind kind;
  const char* name;
  const char* setting;
};
constexpr std::array kKeys = {
    Key{ModuleKind::kSpeech, "model", "speech_model"},
    Key{ModuleKind::kSpeech, "slots", "speech_slots"},
    Key{ModuleKind::kSpeech, "precision", "precision"},
    Key{ModuleKind::kSpeech, "threads", "threads"},
    Key{ModuleKind::kSpeech, "voice", "voice"},
    Key{ModuleKind::kSpeech, "voices", "voices"},
    Key{ModuleKind::kSpeech, "voice_names", "voice_names"},
    Key{ModuleKind::kRecognition, "model", "recognition_model"},
    Key{ModuleKind::kRecognition, "slots", "recognition_slots"},
    Key{ModuleKind::kRecognition, "live_slots", "recognition_live_slots"},
    Key{ModuleKind::kRecognition, "precision", "recognition_precision"},
    Key{ModuleKind::kRecognition, "threads", "recognition_threads"},
    Key{ModuleKind::kRecognition, "heartbeat", "recognition_heartbeat"},
    Key{ModuleKind::kRecognition, "languages", "recognition_languages"},
    Key{ModuleKind::kChat, "model", "chat_model"},
    Key{ModuleKind::kChat, "slots", "chat_slots"},
    Key{ModuleKind::kChat, "precision", "chat_precision"},
    Key{ModuleKind::kChat, "threads", "chat_threads"},
    Key{ModuleKind::kChat, "context", "chat_context"},
};

const Key* find_key(ModuleKind kind, std::string_view name) {
  const auto found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& key) { return key.kind == kind && name == key.name; });
  return found != kKeys.end() ? &*found : nullptr;
}

std::string keys_of(ModuleKind kind) {
  std::string keys = "kind, id, names, load, keep_alive";
  for (const Key& key : kKeys)
    if (key.kind == kind) keys += fmt::format(", {}", key.name);
  return keys;
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kMostNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Status set_names(Texts& names, const SettingValue& value, const std::string& where) {
  const auto* const texts = std::get_if<Texts>(&value);
  if (texts == nullptr || texts->size() > ModuleSettings::kMostNames ||
      !std::all_of(texts->begin(), texts->end(), is_name))
    return fail(Code::kInvalidArgument, "{} is something else; give a list of at most {} names without blanks", where,
                ModuleSettings::kMostNames);
  names = *texts;
  return {};
}

std::optional<double> parse_seconds(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(behind, static_cast<size_t>(end - behind));
  if (unit.empty() || unit == "s") return number;
  if (unit == "m") return number * 60;
  if (unit == "h") return number * 3600;
  return std::nullopt;
}

Result<double> parse_keep_alive(const SettingValue& value, const std::string& where) {
  std::optional<double> given;
  if (const auto* const text = std::get_if<std::string>(&value)) given = parse_seconds(*text);
  if (const auto* const whole = std::get_if<int64_t>(&value)) given = static_cast<double>(*whole);
  if (const auto* const real = std::get_if<double>(&value)) given = *real;
  if (!given || !std::isfinite(*given) || *given > kLongestKeepAliveS)
    return fail(Code::kInvalidArgument,
                "{} is something else; give seconds, or a text such as \"90s\", \"5m\" or \"1h\"; -1: it stays", where);
  return std::max(*given, -1.0);
}

Status set_load(ModuleSettings& module, const SettingValue& value, const std::string& where) {
  const auto* const text = std::get_if<std::string>(&value);
  if (text == nullptr || (*text != "start" && *text != "first-use"))
    return fail(Code::kInvalidArgument, "{} is something else; give \"start\" or \"first-use\"", where);
  module.loads_at_first_use = *text == "first-use";
  return {};
}

}  // namespace

const char* kind_name(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kSpeech: return "speech";
    case ModuleKind::kRecognition: return "recognition";
    case ModuleKind::kChat: return "chat";
  }
  return "";
}

Result<ModuleKind> parse_kind(const SettingValue& value, const std::string& where) {
  if (const auto* const text = std::get_if<std::string>(&value))
    for (const ModuleKind kind : kModuleKinds)
      if (*text == kind_name(kind)) return kind;
  return fail(Code::kInvalidArgument, "{} is something else; give \"speech\", \"recognition\" or \"chat\"", where);
}

Status set_module_value(ModuleSettings& module, std::string_view key, const SettingValue& value,
                        const std::string& where) {
  if (key == "names") return set_names(module.names, value, where);
  if (key == "load") return set_load(module, value, where);
  if (key == "id") {
    const auto* const text = std::get_if<std::string>(&value);
    if (text == nullptr || !is_name(*text))
      return fail(Code::kInvalidArgument, "{} is something else; give a name without blanks, of at most {} bytes",
                  where, kMostNameBytes);
    module.id = *text;
    return {};
  }
  if (key == "keep_alive") {
    SYRINX_TRY(module.keep_alive_s, parse_keep_alive(value, where));
    return {};
  }
  const Key* const known = find_key(module.kind, key);
  if (known == nullptr)
    return fail(Code::kInvalidArgument, "{} is no key of a module of kind {}; there are {}", where,
                kind_name(module.kind), keys_of(module.kind));
  Settings tried;
  SYRINX_TRY_VOID(set(tried, *find_setting(known->setting), value, where));
  module.values.emplace_back(known->setting, value);
  return {};
}

Status finish_module(ModuleSettings& module, bool has_keep_alive, const std::string& where) {
  const char* const setting = find_key(module.kind, "model")->setting;
  const bool has_model = std::any_of(module.values.begin(), module.values.end(), [&](const auto& value) {
    return value.first == setting && !std::get<std::string>(value.second).empty();
  });
  if (!has_model)
    return fail(Code::kInvalidArgument, "{}a module needs 'model': the name of an installed one, a folder or a file",
                where);
  if (!has_keep_alive && module.loads_at_first_use) module.keep_alive_s = ModuleSettings::kUsualKeepAliveS;
  return {};
}

std::string modules_as_toml(const std::vector<ModuleSettings>& modules) {
  std::string text;
  for (const ModuleSettings& module : modules) {
    text += fmt::format("\n[[module]]\nkind = \"{}\"\n", kind_name(module.kind));
    if (!module.id.empty()) text += fmt::format("id = {}\n", setting_as_toml(module.id));
    if (!module.names.empty()) text += fmt::format("names = {}\n", setting_as_toml(module.names));
    text += fmt::format("load = \"{}\"\nkeep_alive = {}\n", module.loads_at_first_use ? "first-use" : "start",
                        setting_as_toml(module.keep_alive_s));
    for (const auto& value : module.values) {
      const auto key =
          std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& each) { return value.first == each.setting; });
      text += fmt::format("{} = {}\n", key->name, setting_as_toml(value.second));
    }
  }
  return text;
}

}  // namespace syrinx::server
