// `[[module]]` tables of the settings file, each a model that the server offers.  speech_model, recognition_model and
// chat_model with the settings around them are the short form of one module of each kind (module_plan.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace syrinx::server {

using Texts = std::vector<std::string>;
using SettingValue = std::variant<std::string, int64_t, double, bool, Texts>;

enum class ModuleKind : uint8_t { kSpeech, kRecognition, kChat };
inline constexpr std::array kModuleKinds = {ModuleKind::kSpeech, ModuleKind::kRecognition, ModuleKind::kChat};
const char* kind_name(ModuleKind kind);  // "speech", as in the file
Result<ModuleKind> parse_kind(const SettingValue& value, const std::string& where);

struct ModuleSettings {
  static constexpr size_t kMost = 32, kMostNames = 64;
  static constexpr double kUsualKeepAliveS = 300;  // of a module that is loaded at its first use

  ModuleKind kind = ModuleKind::kSpeech;
  std::string id = {};  // empty: by its model
  Texts names = {};     // further ones
  bool loads_at_first_use = false;
  double keep_alive_s = -1;  // without a request, before it is unloaded; negative: it stays
  // Settings of the short form, "speech_slots", with their values.
  std::vector<std::pair<std::string, SettingValue>> values = {};
};

// Sets a key of the table, whose kind is known.  kInvalidArgument: `where`, then what is wrong and what is allowed.
Status set_module_value(ModuleSettings& module, std::string_view key, const SettingValue& value,
                        const std::string& where);
// Behind the last key of a table.
Status finish_module(ModuleSettings& module, bool has_keep_alive, const std::string& where);

// The tables as a file ends with them.
std::string modules_as_toml(const std::vector<ModuleSettings>& modules);

}  // namespace syrinx::server
