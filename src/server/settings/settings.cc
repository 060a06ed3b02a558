#include "server/settings/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "base/in_quotes.h"
#include "base/json.h"
#include "server/settings/access.h"
#include "server/settings/module_plan.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// As TOML writes it: JSON's strings are among its own.  Beyond what can be seen in ASCII as numbers, so that every
// terminal shows what is there.
std::string written(const std::string& text) {
  std::string quoted = Json(text).dump();
  if (text::find_invalid(quoted)) return quoted;  // a file name of other bytes; no file of settings can hold it
  std::string out;
  for (size_t at = 0; at < quoted.size();) {
    const char32_t c = text::decode(quoted, at);
    if (c < 0x7f)
      out += static_cast<char>(c);
    else
      out += toml_escape(c);
  }
  return out;
}
std::string written(bool value) { return value ? "true" : "false"; }
std::string written(int64_t value) { return fmt::format("{}", value); }
std::string written(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}
std::string written(const Texts& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + written(text);
  return "[" + list + "]";
}

std::string shown(const SettingValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return in_quotes(*text);
  return std::visit([](const auto& held) { return written(held); }, value);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (word.empty()) continue;
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

bool takes(const Setting& setting, const std::string& text) {
  return text.size() <= 4096 && (setting.choices.empty() || std::find(setting.choices.begin(), setting.choices.end(),
                                                                      text) != setting.choices.end());
}

std::string wanted(const Setting& setting) {
  return std::visit(
      Overloaded{
          [&](std::string Settings::*) -> std::string {
            if (setting.choices.empty()) return "a text";
            const bool may_be_empty = takes(setting, std::string());
            return "one of " + joined(setting.choices) + (may_be_empty ? ", or an empty text" : "");
          },
          [&](int64_t Settings::*) -> std::string {
            return fmt::format("a whole number from {} to {}", setting.min, setting.max);
          },
          [&](double Settings::*) -> std::string {
            return fmt::format("a number from {} to {}", setting.min, setting.max);
          },
          [&](bool Settings::*) -> std::string { return "true or false"; },
          [&](Texts Settings::*) -> std::string { return fmt::format("a list of texts, each {}", setting.value); }},
      setting.member);
}

template <class Number>
bool takes(const Setting& setting, Number number) {
  return static_cast<double>(number) >= setting.min && static_cast<double>(number) <= setting.max;
}

// Whether the value is of the setting's kind and within its limits; then it is set.
bool assign(Settings& settings, const Setting& setting, const SettingValue& value) {
  return std::visit(Overloaded{[&](std::string Settings::*member, const std::string& text) {
                                 if (!takes(setting, text)) return false;
                                 settings.*member = text;
                                 return true;
                               },
                               [&](int64_t Settings::*member, int64_t number) {
                                 if (!takes(setting, number)) return false;
                                 settings.*member = number;
                                 return true;
                               },
                               [&](double Settings::*member, double number) {
                                 if (!takes(setting, number)) return false;
                                 settings.*member = number;
                                 return true;
                               },
                               [&](double Settings::*member, int64_t number) {
                                 if (!takes(setting, number)) return false;
                                 settings.*member = static_cast<double>(number);
                                 return true;
                               },
                               [&](bool Settings::*member, bool on) {
                                 settings.*member = on;
                                 return true;
                               },
                               [&](Texts Settings::*member, const Texts& texts) {
                                 settings.*member = texts;
                                 return texts.size() <= 1024;
                               },
                               [](const auto&, const auto&) { return false; }},
                    setting.member, value);
}

// The whole of `text` as a number; else the text, which no number's setting takes.
template <class Number>
SettingValue number_or_text(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || behind != end) return text;
  return number;
}

}  // namespace

std::string Setting::flag() const {
  std::string text = std::string("--") + name;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string Setting::flag_help() const {
  constexpr size_t kShort = 40;
  const Settings defaults;
  std::string values = std::visit(Overloaded{[&](std::string Settings::*) { return joined(choices); },
                                             [&](bool Settings::*) { return std::string(); },
                                             [&](Texts Settings::*) { return std::string("once for each"); },
                                             [&](const auto&) { return fmt::format("{} to {}", min, max); }},
                                  member);
  const std::string usual = std::visit(
      Overloaded{[&](std::string Settings::*text) { return defaults.*text; },
                 [&](bool Settings::*) { return std::string(); }, [&](Texts Settings::*) { return std::string(); },
                 [&](const auto& number) { return fmt::format("{}", defaults.*number); }},
      member);
  if (!usual.empty() && usual.size() <= kShort) values += (values.empty() ? "default " : "; default ") + usual;
  return values.empty() ? help : fmt::format("{} [{}]", help, values);
}

const Setting* find_setting(std::string_view name) {
  for (const Setting& setting : setting_table())
    if (name == setting.name) return &setting;
  return nullptr;
}

Status set(Settings& settings, const Setting& setting, const SettingValue& value, const std::string& where) {
  if (assign(settings, setting, value)) {
    if (setting.in_file_only)
      for (const std::string& key : std::get<Texts>(value)) SYRINX_TRY_VOID(check_key(key, where));
    return {};
  }
  return fail(Code::kInvalidArgument, "{} is {}; give {}", where,
              setting.in_file_only ? "something else" : shown(value), wanted(setting));
}

Status set_from_texts(Settings& settings, const Setting& setting, const Texts& texts, const std::string& where) {
  if (setting.is_list()) return set(settings, setting, texts, where);
  const std::string& text = texts.back();
  const SettingValue value =
      std::visit(Overloaded{[&](int64_t Settings::*) { return number_or_text<int64_t>(text); },
                            [&](double Settings::*) { return number_or_text<double>(text); },
                            [&](bool Settings::*) { return text == "true" ? SettingValue(true) : SettingValue(text); },
                            [&](const auto&) { return SettingValue(text); }},
                 setting.member);
  return set(settings, setting, value, where);
}

std::string setting_as_toml(const SettingValue& value) {
  return std::visit([](const auto& held) { return written(held); }, value);
}

std::string toml_escape(char32_t c) {
  const auto number = static_cast<uint32_t>(c);
  return number <= 0xffff ? fmt::format("\\u{:04X}", number) : fmt::format("\\U{:08X}", number);
}

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

Result<std::pair<std::string, std::string>> split_pair(std::string_view text, std::string_view setting) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    return fail(Code::kInvalidArgument, "'{}' holds {}; give NAME=VALUE", setting, in_quotes(text));
  return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

Status check_pairs(const Texts& texts, const char* setting) {
  for (const std::string& text : texts) {
    const auto pair = split_pair(text, setting);
    if (!pair) return tl::unexpected(pair.error());
  }
  return {};
}

Status check_languages(const Texts& languages) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto may_follow = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  for (const std::string& language : languages)
    if (language.empty() || !is_letter(language[0]) || !std::all_of(language.begin(), language.end(), may_follow))
      return fail(Code::kInvalidArgument, "'recognition_languages' holds {}; give a code such as en or en-GB",
                  in_quotes(language));
  return {};
}

Status check(const Settings& settings) {
  if (!is_loopback(settings.host) && settings.api_keys.empty() && settings.api_key_file.empty() &&
      !settings.allow_no_key)
    return fail(Code::kInvalidArgument,
                "'host' {} can be reached by other machines, and no API key is set; give api_key_file, or set "
                "allow_no_key if anybody may use this server",
                in_quotes(settings.host));
  if (!is_loopback(settings.host) && settings.wyoming_port >= 0 && !settings.allow_no_key)
    return fail(Code::kInvalidArgument,
                "'host' {} can be reached by other machines, and 'wyoming_port' has no keys; leave it out, or "
                "set allow_no_key if anybody may use it",
                in_quotes(settings.host));
  if (settings.port > 0 && settings.port == settings.wyoming_port)
    return fail(Code::kInvalidArgument, "'port' and 'wyoming_port' are both {}; give them different values",
                settings.port);
  if (settings.tls_certificate.empty() != settings.tls_key.empty())
    return fail(Code::kInvalidArgument,
                "'{}' is set without '{}', and TLS takes both; set the other one, too, or neither",
                settings.tls_key.empty() ? "tls_certificate" : "tls_key",
                settings.tls_key.empty() ? "tls_key" : "tls_certificate");
  if (settings.tls_self_signed && !settings.tls_certificate.empty())
    return fail(Code::kInvalidArgument,
                "'tls_self_signed' has the server make its certificate, and 'tls_certificate' names one; leave one of "
                "them out");
  for (const std::string& key : settings.api_keys) SYRINX_TRY_VOID(check_key(key, "'api_keys'"));
  for (const std::string& origin : settings.cors_origins) SYRINX_TRY_VOID(check_origin(origin));
  SYRINX_TRY_VOID(check_modules(settings));
  if (settings.max_uploads_mb < settings.max_upload_mb)
    return fail(Code::kInvalidArgument, "'max_uploads_mb' is {}, less than one upload of 'max_upload_mb' {}; raise it",
                settings.max_uploads_mb, settings.max_upload_mb);
  if (settings.decode_end_byte == settings.decode_keepalive_byte)
    return fail(Code::kInvalidArgument,
                "'decode_end_byte' and 'decode_keepalive_byte' are both {}; give them different values",
                settings.decode_end_byte);
  return {};
}

size_t upload_share_bytes(const Settings& settings) {
  return static_cast<size_t>(std::max(settings.max_uploads_mb / 2, settings.max_upload_mb)) << 20;
}

std::vector<std::string> doubts(const Settings& settings) {
  constexpr int64_t kCharacterBytes = 12, kOtherBytes = 1024;  // of an emoji, escaped; of the rest of a request
  std::vector<std::string> doubts;
  const auto share_kb = static_cast<int64_t>(upload_share_bytes(settings) / 1024);
  for (const auto& [name, kb] :
       {std::pair("max_body_kb", settings.max_body_kb), std::pair("max_message_kb", settings.max_message_kb)})
    if (kb > share_kb)
      doubts.push_back(
          fmt::format("'{}' is {}, more than the {} KB that 'max_uploads_mb' and 'max_upload_mb' leave one address: "
                      "what is longer is refused; raise these, or give {}",
                      name, kb, share_kb, share_kb));
  const int64_t needed_kb = (kCharacterBytes * settings.max_text_characters + kOtherBytes + 1023) / 1024;
  for (const auto& [name, kb] :
       {std::pair("max_body_kb", settings.max_body_kb), std::pair("max_message_kb", settings.max_message_kb)})
    if (kb < needed_kb && !plans_of(settings, ModuleKind::kSpeech).empty())
      doubts.push_back(fmt::format(
          "'{}' is {}, and a text of 'max_text_characters' {}, of up to {} bytes each, may not fit; give {}, "
          "or fewer characters",
          name, kb, settings.max_text_characters, kCharacterBytes, needed_kb));
  constexpr int64_t kAverageS = 10;      // over which a session's events are counted (realtime/session.cc)
  constexpr double kAudioKbPerS = 62.5;  // base64 of 16-bit samples at 24 kHz
  const double clip_kb = kAudioKbPerS * std::max(settings.max_clip_s, settings.max_backlog_s) + 1;
  const int64_t append_kb = std::min(settings.max_message_kb, static_cast<int64_t>(std::ceil(clip_kb)));
  if (append_kb > kAverageS * settings.session_kb_per_s)
    doubts.push_back(fmt::format(
        "'session_kb_per_s' is {}, and an append of {} KB, as 'max_clip_s' and 'max_message_kb' allow, is more than "
        "the {} s of it that may come at once: a session may wait behind it; give {}, or shorter clips",
        settings.session_kb_per_s, append_kb, kAverageS, (append_kb + kAverageS - 1) / kAverageS));
  return doubts;
}

std::string settings_as_toml(const Settings& settings) {
  std::string text = "# syrinx serve --config FILE\n";
  for (const Setting& setting : setting_table()) {
    text += fmt::format("\n# {}.\n# Takes {}.\n", setting.help, wanted(setting));
    if (setting.in_file_only && !(settings.*std::get<Texts Settings::*>(setting.member)).empty()) {
      text += fmt::format("# There are some, which are not printed.\n# {} = [...]\n", setting.name);
      continue;
    }
    text += std::visit(
        [&](const auto& member) { return fmt::format("{} = {}\n", setting.name, written(settings.*member)); },
        setting.member);
  }
  return text + modules_as_toml(settings.modules);
}

std::string settings_as_markdown() {
  const Settings defaults;
  std::string text = "| key of the file | flag | value | default | meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const Setting& setting : setting_table()) {
    const std::string value = wanted(setting);
    std::string help = setting.help, flags = setting.in_file_only ? "none" : "`" + setting.flag() + "`";
    if (setting.alias != nullptr) flags += fmt::format(", `{}`", setting.alias);
    for (size_t at = 0; (at = help.find('|', at)) != std::string::npos; at += 2) help.replace(at, 1, "\\|");
    text += std::visit(
        [&](const auto& member) {
          return fmt::format("| `{}` | {} | {} | `{}` | {} |\n", setting.name, flags, value, written(defaults.*member),
                             help);
        },
        setting.member);
  }
  return text;
}

}  // namespace syrinx::server
