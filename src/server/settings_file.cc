#include "server/settings_file.h"

// Its own assertions fail on malformed keys that it goes on to report as errors.
#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "base/in_quotes.h"
#include "base/mapped_file.h"

namespace syrinx::server {
namespace {

// Nothing for a value that no setting takes, such as a date.
std::optional<SettingValue> value_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return SettingValue(text->get());
  if (const auto* whole = node.as_integer()) return SettingValue(whole->get());
  if (const auto* real = node.as_floating_point()) return SettingValue(real->get());
  if (const auto* flag = node.as_boolean()) return SettingValue(flag->get());
  const auto* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  Texts texts;
  for (const toml::node& item : *array) {
    const auto* text = item.as_string();
    if (text == nullptr) return std::nullopt;
    texts.push_back(text->get());
  }
  return SettingValue(std::move(texts));
}

}  // namespace

Status read_settings(std::string_view text, const std::string& name, Settings& settings) {
  // toml++ 3.3 reaches what it calls unreachable at some of them.
  const auto foreign =
      std::find_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 127; });
  if (foreign != text.end())
    return fail(Code::kInvalidArgument, "'{}', line {}: a byte that is not ASCII; write \\uXXXX in a text instead",
                name, 1 + std::count(text.begin(), foreign, '\n'));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return fail(Code::kInvalidArgument, "'{}', line {}: {}; the file must be TOML", name,
                parsed.error().source().begin.line, parsed.error().description());
  }
  for (auto&& [key, node] : parsed.table()) {
    const std::string where = fmt::format("'{}', line {}: ", name, key.source().begin.line);
    const Setting* const setting = find_setting(key.str());
    if (setting == nullptr)
      return fail(Code::kInvalidArgument,
                  "{}there is no setting {}; `syrinx serve --print-config` shows all that there are", where,
                  in_quotes(key.str()));
    const std::optional<SettingValue> value = value_of(node);
    if (!value)
      return fail(Code::kInvalidArgument, "{}'{}' has a value of a kind that no setting has", where, setting->name);
    SYRINX_TRY_VOID(set(settings, *setting, *value, fmt::format("{}'{}'", where, setting->name)));
  }
  return {};
}

Status read_settings_file(const std::string& path, Settings& settings) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > kMaxSettingsBytes)
    return fail(Code::kLimitExceeded, "'{}' has {} bytes; a file of settings has at most {}", path, bytes.size(),
                kMaxSettingsBytes);
  return read_settings({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, settings);
}

}  // namespace syrinx::server
