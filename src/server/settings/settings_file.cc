#include "server/settings/settings_file.h"

// Its own assertions fail on malformed keys that it goes on to report as errors.
#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "base/in_quotes.h"
#include "base/mapped_file.h"
#include "text/unicode.h"

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

// Behind the text in quotes that begins at `at`; one that does not end is cut at its line, where toml++ stops, too.
size_t behind_text(std::string_view file, size_t at) {
  const char quote = file[at];
  const std::string three(3, quote);
  const bool has_lines = file.substr(at).starts_with(three);
  for (at += has_lines ? three.size() : 1; at < file.size(); ++at) {
    if (file[at] == '\\' && quote == '"')
      ++at;
    else if (!has_lines && file[at] == '\n')
      return at;
    else if (!has_lines && file[at] == quote)
      return at + 1;
    else if (has_lines && file.substr(at).starts_with(three))
      return std::min({file.find_first_not_of(quote, at), at + 2 + three.size(), file.size()});  // two may be its own
  }
  return file.size();
}

// Behind the text or the comment that begins at `at`, or the character there.
size_t behind_part(std::string_view file, size_t at) {
  if (file[at] == '#') return std::min(file.find('\n', at), file.size());
  return file[at] == '"' || file[at] == '\'' ? behind_text(file, at) : at + 1;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) <= 127; }

// Where a part begins that is neither text nor comment, and is not ASCII.
std::optional<size_t> find_foreign(std::string_view file) {
  for (size_t at = 0; at < file.size(); at = behind_part(file, at))
    if (!is_ascii(file[at])) return at;
  return std::nullopt;
}

// Whether a backslash ends it that escapes what comes next, and is not escaped itself.
bool ends_escaping(std::string_view written) { return (written.size() - 1 - written.find_last_not_of('\\')) % 2 == 1; }

// Behind a backslash a character cannot be escaped and stays an error.
void write_in_ascii(std::string_view part, std::string& written) {
  for (size_t at = 0; at < part.size();) {
    const char32_t c = text::decode(part, at);
    if (c <= 127)
      written += static_cast<char>(c);
    else
      written += ends_escaping(written) ? "?" : toml_escape(c);
  }
}

// A text in single quotes, which know no escapes, in double ones.
std::string in_double_quotes(std::string_view part) {
  std::string written;
  const size_t quotes = part.starts_with("'''") ? 3 : 1;
  const bool has_end = part.size() >= 2 * quotes && part.substr(part.size() - quotes) == part.substr(0, quotes);
  written.append(quotes, '"');
  for (const char c : part.substr(quotes, part.size() - quotes - (has_end ? quotes : 0))) {
    if (c == '"' || c == '\\') written += '\\';
    written += c;
  }
  if (has_end) written.append(quotes, '"');
  return written;
}

// toml++ 3.3 reaches what it calls unreachable at some characters beyond ASCII, so none goes there as it is.
std::string in_ascii(std::string_view file) {
  std::string written;
  for (size_t at = 0; at < file.size();) {
    const std::string_view part = file.substr(at, behind_part(file, at) - at);
    at += part.size();
    const bool is_plain = std::all_of(part.begin(), part.end(), is_ascii);
    write_in_ascii(is_plain || part.front() != '\'' ? std::string(part) : in_double_quotes(part), written);
  }
  return written;
}

Status check_characters(std::string_view file, const std::string& name) {
  const auto line = [&](size_t at) {
    return 1 + std::count(file.begin(), file.begin() + static_cast<ptrdiff_t>(at), '\n');
  };
  if (const auto malformed = text::find_invalid(file))
    return fail(Code::kInvalidArgument, "'{}', line {}: a byte that is not UTF-8; save the file as UTF-8", name,
                line(*malformed));
  if (const auto foreign = find_foreign(file))
    return fail(Code::kInvalidArgument,
                "'{}', line {}: a character that is not ASCII outside of a text; put quotes around the text", name,
                line(*foreign));
  return {};
}

std::string where_of(const std::string& name, const toml::source_region& source) {
  return fmt::format("'{}', line {}: ", name, source.begin.line);
}

Result<SettingValue> value_at(const toml::node& node, const std::string& where, std::string_view key) {
  std::optional<SettingValue> value = value_of(node);
  if (value) return std::move(*value);
  return fail(Code::kInvalidArgument, "{}{} has a value of a kind that no setting has", where, in_quotes(key));
}

Status read_module(const toml::table& table, const std::string& name, ModuleSettings& module) {
  const std::string begin = where_of(name, table.source());
  const toml::node* const kind = table.get("kind");
  if (kind == nullptr)
    return fail(Code::kInvalidArgument, "{}a module needs 'kind': \"speech\", \"recognition\" or \"chat\"", begin);
  SYRINX_TRY(const SettingValue kind_value, value_at(*kind, where_of(name, kind->source()), "kind"));
  SYRINX_TRY(module.kind, parse_kind(kind_value, where_of(name, kind->source()) + "'kind'"));
  for (auto&& [key, node] : table) {
    if (key.str() == "kind") continue;
    const std::string where = where_of(name, key.source());
    SYRINX_TRY(const SettingValue value, value_at(node, where, key.str()));
    SYRINX_TRY_VOID(set_module_value(module, key.str(), value, where + in_quotes(key.str())));
  }
  return finish_module(module, table.contains("keep_alive"), begin);
}

// Without the modules of files before.
Status read_modules(const toml::node& node, const std::string& name, Settings& settings) {
  const toml::array* const array = node.as_array();
  const std::string where = where_of(name, node.source());
  if (array == nullptr || !array->is_homogeneous<toml::table>())
    return fail(Code::kInvalidArgument, "{}'module' is something else; begin each module with the line [[module]]",
                where);
  if (array->size() > ModuleSettings::kMost)
    return fail(Code::kLimitExceeded, "{}there are {} modules; a server has at most {}", where, array->size(),
                ModuleSettings::kMost);
  settings.modules.clear();
  for (const toml::node& each : *array)
    SYRINX_TRY_VOID(read_module(*each.as_table(), name, settings.modules.emplace_back()));
  return {};
}

std::string& short_form_model(Settings& settings, ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kSpeech: return settings.speech_model;
    case ModuleKind::kRecognition: return settings.recognition_model;
    case ModuleKind::kChat: break;
  }
  return settings.chat_model;
}

}  // namespace

Status read_settings(std::string_view text, const std::string& name, Settings& settings) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // which some editors put before everything
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  SYRINX_TRY_VOID(check_characters(text, name));
  const toml::parse_result parsed = toml::parse(in_ascii(text));
  if (!parsed) {
    return fail(Code::kInvalidArgument, "'{}', line {}: {}; the file must be TOML", name,
                parsed.error().source().begin.line, parsed.error().description());
  }
  for (auto&& [key, node] : parsed.table()) {
    const std::string where = where_of(name, key.source());
    if (key.str() == "module") {
      SYRINX_TRY_VOID(read_modules(node, name, settings));
      continue;
    }
    const Setting* const setting = find_setting(key.str());
    if (setting == nullptr)
      return fail(Code::kInvalidArgument, "{}there is no setting {}; `syrinx serve --print-config` shows all", where,
                  in_quotes(key.str()));
    SYRINX_TRY(const SettingValue value, value_at(node, where, setting->name));
    SYRINX_TRY_VOID(set(settings, *setting, value, fmt::format("{}'{}'", where, setting->name)));
  }
  for (const ModuleSettings& module : settings.modules) {
    std::string& short_form = short_form_model(settings, module.kind);
    if (!parsed.table().contains(fmt::format("{}_model", kind_name(module.kind)))) short_form.clear();
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
