#include "server/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "base/in_quotes.h"
#include "base/json.h"
#include "server/access.h"
#include "server/model_id.h"
#include "server/upstream/upstream_settings.h"
#include "text/unicode.h"

namespace syrinx::server {
namespace {

Setting text(const char* name, const char* value, Setting::Member member, const char* help) {
  return {.name = name, .value = value, .member = member, .help = help};
}

Setting choice(const char* name, const char* value, Setting::Member member, std::vector<std::string> choices,
               const char* help) {
  return {.name = name, .value = value, .member = member, .help = help, .choices = std::move(choices)};
}

Setting number(const char* name, const char* value, Setting::Member member, double min, double max, const char* help) {
  return {.name = name, .value = value, .member = member, .min = min, .max = max, .help = help};
}

Setting seconds(const char* name, double Settings::*member, double min, double max, const char* help) {
  return number(name, "SECONDS", member, min, max, help);
}

Setting flag(const char* name, bool Settings::*member, const char* help) {
  return {.name = name, .value = "", .member = member, .help = help};
}

// A list that no other user of the machine may read: never a flag, never printed.
Setting secrets(const char* name, const char* value, Texts Settings::*member, const char* help) {
  return {.name = name, .value = value, .member = member, .help = help, .in_file_only = true};
}

Setting also_called(const char* alias, Setting setting) {
  setting.alias = alias;
  return setting;
}

using Rows = std::vector<Setting>;

Rows place() {
  return {
      text("host", "ADDRESS", &Settings::host, "Address to listen on; one that other machines reach needs an API key"),
      number("port", "N", &Settings::port, 0, 65535, "TCP port; 0: any free one"),
      number("wyoming_port", "N", &Settings::wyoming_port, -1, 65535,
             "TCP port of the Wyoming protocol, which has no keys, 10200 by custom; 0: any free one; -1: none"),
  };
}

Rows speech() {
  return {
      text("speech_model", "NAME|PATH", &Settings::speech_model,
           "Model that speaks: the name of an installed one, a folder or a file; empty: none"),
      text(
          "voice", "VOICE", &Settings::voice,
          "Voice of requests that name none, by its name or file; empty: the model's own default, or the first listed"),
      text("voices", "NAME=FILE", &Settings::voices, "Voices from files, besides those beside the model"),
      text("voice_names", "NAME=VOICE", &Settings::voice_names,
           "Other names of voices; what a request calls NAME is spoken by VOICE"),
      text("voices_dir", "FOLDER", &Settings::voices_dir,
           "Folder of the voices that clients upload, in it one for each model; auto: voices, beside the installed "
           "models; empty: none may be uploaded"),
      number("max_voices", "N", &Settings::max_voices, 1, 1024, "Uploaded voices; one more is refused with 409"),
      choice("precision", "TYPE", &Settings::precision, {"", "int8", "f32", "bf16", "int4"},
             "Arithmetic of the speaking model; empty: its family's default"),
      number("threads", "N", &Settings::threads, 0, 64,
             "Threads of the speaking model; 0: as many as there are cores, up to 8"),
      number("speech_slots", "N", &Settings::speech_slots, 1, 64,
             "Texts that are spoken at once; one more is refused with 503"),
      flag("ignore_instructions", &Settings::ignore_instructions,
           "Speak requests with `instructions` that the model cannot heed, instead of refusing them"),
  };
}

Rows recognition() {
  return {
      text("recognition_model", "NAME|PATH", &Settings::recognition_model,
           "Model that recognises speech: the name of an installed one, a folder or a file; empty: none"),
      choice("recognition_precision", "TYPE", &Settings::recognition_precision, {"", "int8", "bf16", "f32"},
             "Arithmetic of the recognising model; empty: its family's default"),
      number("recognition_threads", "N", &Settings::recognition_threads, 0, 64,
             "Threads of the recognising model; 0: as many as there are cores, up to 8"),
      number("recognition_slots", "N", &Settings::recognition_slots, 1, 64,
             "Recordings and streams that are heard at once; one more is refused with 503"),
      number("recognition_live_slots", "N", &Settings::recognition_live_slots, 0, 64,
             "Of them, so many that recordings leave to sound that comes as it is spoken; one they may always take"),
      flag("recognition_heartbeat", &Settings::recognition_heartbeat,
           "Have an idle transducer hear a little silence about every second, for 1 % of a core at most"),
      text("recognition_languages", "LANGUAGE", &Settings::recognition_languages,
           "Languages of the recognising model, say en, for clients that name one; needed where its files do not tell"),
      flag("ignore_hints", &Settings::ignore_hints,
           "Recognise speech for requests with a `prompt`, `keywords` or a `temperature` that the model cannot heed, "
           "instead of refusing them"),
  };
}

Rows sessions() {
  return {
      choice("realtime_dialect", "NAMES", &Settings::realtime_dialect, {"auto", "released", "beta"},
             "Names of the events of /v1/realtime; auto: as the client asks for"),
      number("max_sessions", "N", &Settings::max_sessions, 1, 1024,
             "Sessions of /v1/realtime at once, each with a thread; one more is refused with 503"),
      seconds("max_backlog_s", &Settings::max_backlog_s, 0.1, 3600,
              "Of a session's sound that waits to be heard, or comes ahead of the clock; more is refused with an error "
              "event"),
      seconds("session_idle_s", &Settings::session_idle_s, 1, 86400,
              "A session in which nothing is asked for so long is closed"),
      seconds("max_session_s", &Settings::max_session_s, 1, 86400, "A session is closed after so long"),
      number("max_message_kb", "KB", &Settings::max_message_kb, 1, 16384, "Of a message of a WebSocket"),
  };
}

Rows decoding() {
  return {
      number("decode_end_byte", "N", &Settings::decode_end_byte, 0, 255,
             "Message of one byte that ends a stream of /v2/decode; some clients send 255"),
      number("decode_keepalive_byte", "N", &Settings::decode_keepalive_byte, 0, 255,
             "Message of one byte that keeps such a stream alive; some clients send 0"),
      number("decode_messages_per_s", "N", &Settings::decode_messages_per_s, 1, 1000000,
             "Messages that such a stream takes, on an average of max_backlog_s"),
      seconds("decode_idle_s", &Settings::decode_idle_s, 1, 86400,
              "Such a stream is closed when neither sound nor a keepalive has come for so long"),
      seconds("decode_max_batch_s", &Settings::decode_max_batch_s, 1, 3600,
              "Of a recording's sound that is sent to /v2/decode/batch"),
  };
}

Rows upstream() {
  return {
      text("upstream", "URL", &Settings::upstream,
           "Language model that answers in sessions of /v1/realtime: the base of an OpenAI-compatible interface, say "
           "http://127.0.0.1:11434/v1; empty: none"),
      text("upstream_model", "NAME", &Settings::upstream_model,
           "Model that is asked for there; empty: its own default"),
      text("upstream_key_file", "FILE", &Settings::upstream_key_file, "File with the key that is sent there"),
      text("upstream_ca_file", "FILE", &Settings::upstream_ca_file,
           "PEM file with certificates that vouch for it; empty: the system's"),
      text("upstream_instructions", "TEXT", &Settings::upstream_instructions,
           "What it is told first; a session's own instructions take its place"),
      choice("upstream_max_tokens_field", "NAME", &Settings::upstream_max_tokens_field,
             {"max_tokens", "max_completion_tokens"},
             "What it calls the limit of an answer; OpenAI's newer models take max_completion_tokens alone"),
      seconds("upstream_timeout_s", &Settings::upstream_timeout_s, 0.1, 3600,
              "A response fails when no word has come from it for so long, the first one or a further one"),
      number("upstream_max_answer_kb", "KB", &Settings::upstream_max_answer_kb, 1, 1048576,
             "Of an answer as it comes, with all that surrounds its text"),
      number("upstream_history_items", "N", &Settings::upstream_history_items, 1, 512,
             "Of a conversation the newest items are sent, so many at most"),
      number("upstream_history_characters", "N", &Settings::upstream_history_characters, 1, 1048576,
             "With so much text in all, and the newest whatever it has"),
  };
}

Rows access() {
  return {
      secrets("api_keys", "KEY", &Settings::api_keys,
              "Keys of which a request must bear one; empty: none is asked for"),
      text("api_key_file", "FILE", &Settings::api_key_file, "File with more such keys, one a line"),
      flag("allow_no_key", &Settings::allow_no_key, "Listen where other machines can connect without asking for a key"),
      text("tls_certificate", "FILE", &Settings::tls_certificate,
           "PEM file with the server's certificate and its chain: HTTP becomes HTTPS; read again on SIGHUP"),
      text("tls_key", "FILE", &Settings::tls_key, "PEM file with the certificate's private key, without a password"),
      text("cors_origins", "ORIGIN", &Settings::cors_origins,
           "Web pages of other origins that may ask, say https://example.org; `*`: all"),
  };
}

Rows limits() {
  return {
      number("max_text_characters", "N", &Settings::max_text_characters, 1, 1000000, "Of a text to be spoken"),
      number("max_body_kb", "KB", &Settings::max_body_kb, 1, 16384, "Of a request's JSON"),
      number("max_header_kb", "KB", &Settings::max_header_kb, 1, 60, "Of a request's line and header"),
      number("max_upload_mb", "MB", &Settings::max_upload_mb, 1, 1024, "Of a request with a recording"),
      number("max_uploads_mb", "MB", &Settings::max_uploads_mb, 1, 65536,
             "Of all such requests together that are arriving or being worked on; one more is refused with 503"),
      seconds("max_recording_s", &Settings::max_recording_s, 1, 86400, "Of a recording's sound"),
      seconds("max_utterance_s", &Settings::max_utterance_s, 1, 86400, "Of what is said at once over Wyoming"),
      number("max_connections", "N", &Settings::max_connections, 1, 65536, "Open connections; one more is refused"),
      number("max_connections_per_address", "N", &Settings::max_connections_per_address, 1, 65536,
             "Of them from one address, or one network of 64 bits where it is of IPv6"),
  };
}

Rows times() {
  return {
      seconds("idle_timeout_s", &Settings::idle_timeout_s, 0.1, 3600,
              "A connection without a request is closed after so long"),
      seconds("request_timeout_s", &Settings::request_timeout_s, 0.1, 3600,
              "A request must have arrived whole so long after its first byte"),
      seconds("upload_timeout_s", &Settings::upload_timeout_s, 0.1, 3600,
              "A request with a recording must have arrived whole so long after its header"),
      seconds("text_timeout_s", &Settings::text_timeout_s, 0.1, 86400,
              "A text or a sound that comes in parts over Wyoming must have come whole so long after its beginning"),
      seconds("stalled_reader_s", &Settings::stalled_reader_s, 0.1, 3600,
              "A client that takes nothing of its answer for so long is cut"),
      seconds("stuck_after_s", &Settings::stuck_after_s, 1, 3600,
              "Without a piece of speech for so long, /health says that the engine is stuck"),
      also_called("--drain-timeout", seconds("drain_timeout_s", &Settings::drain_timeout_s, 0, 86400,
                                             "Answers that are under way get so long to end after SIGTERM")),
  };
}

Rows report() {
  return {
      choice("log", "LEVEL", &Settings::log, {"info", "error", "off"},
             "JSON lines on the standard error: each request, faults alone, or nothing"),
  };
}

const Rows& table() {
  static const Rows settings = [] {
    Rows all;
    for (Rows (*group)() : {place, speech, recognition, sessions, decoding, upstream, access, limits, times, report})
      std::ranges::move(group(), std::back_inserter(all));
    return all;
  }();
  return settings;
}

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

std::string wanted(const Setting& setting) {
  return std::visit(Overloaded{[&](std::string Settings::*) -> std::string {
                                 return setting.choices.empty() ? "a text" : "one of " + joined(setting.choices);
                               },
                               [&](int64_t Settings::*) -> std::string {
                                 return fmt::format("a whole number from {} to {}", setting.min, setting.max);
                               },
                               [&](double Settings::*) -> std::string {
                                 return fmt::format("a number from {} to {}", setting.min, setting.max);
                               },
                               [&](bool Settings::*) -> std::string { return "true or false"; },
                               [&](Texts Settings::*) -> std::string { return "a list of texts"; }},
                    setting.member);
}

bool takes(const Setting& setting, const std::string& text) {
  return text.size() <= 4096 && (setting.choices.empty() || std::find(setting.choices.begin(), setting.choices.end(),
                                                                      text) != setting.choices.end());
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

Status check_pairs(const Texts& texts, const char* setting) {
  for (const std::string& text : texts) {
    const auto pair = split_pair(text, setting);
    if (!pair) return tl::unexpected(pair.error());
  }
  return {};
}

}  // namespace

std::string Setting::flag() const {
  std::string text = std::string("--") + name;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::span<const Setting> setting_table() { return table(); }

const Setting* find_setting(std::string_view name) {
  for (const Setting& setting : table())
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

Status check(const Settings& settings) {
  if (!is_loopback(settings.host) && settings.api_keys.empty() && settings.api_key_file.empty() &&
      !settings.allow_no_key)
    return fail(Code::kInvalidArgument,
                "'host' {} can be reached by other machines, and no API key is set; give api_key_file, or set "
                "allow_no_key if anybody may use this server",
                in_quotes(settings.host));
  if (!is_loopback(settings.host) && settings.wyoming_port >= 0 && !settings.allow_no_key)
    return fail(
        Code::kInvalidArgument,
        "'host' {} can be reached by other machines, and 'wyoming_port' asks nobody for a key; leave it out, or "
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
  for (const std::string& key : settings.api_keys) SYRINX_TRY_VOID(check_key(key, "'api_keys'"));
  for (const std::string& origin : settings.cors_origins) SYRINX_TRY_VOID(check_origin(origin));
  if (settings.speech_model.empty() && settings.recognition_model.empty())
    return fail(
        Code::kInvalidArgument,
        "'speech_model' and 'recognition_model' are both empty, so there is nothing to serve; name one of them");
  if (model_id(settings.speech_model) == model_id(settings.recognition_model))
    return fail(Code::kInvalidArgument,
                "'speech_model' and 'recognition_model' are both called '{}'; rename a folder or file, so that clients "
                "can tell them apart",
                model_id(settings.speech_model));
  if (settings.max_uploads_mb < settings.max_upload_mb)
    return fail(Code::kInvalidArgument, "'max_uploads_mb' is {}, less than one upload of 'max_upload_mb' {}; raise it",
                settings.max_uploads_mb, settings.max_upload_mb);
  if (settings.decode_end_byte == settings.decode_keepalive_byte)
    return fail(Code::kInvalidArgument,
                "'decode_end_byte' and 'decode_keepalive_byte' are both {}; give them different values",
                settings.decode_end_byte);
  SYRINX_TRY_VOID(upstream::check_upstream(settings));
  SYRINX_TRY_VOID(check_pairs(settings.voices, "voices"));
  return check_pairs(settings.voice_names, "voice_names");
}

std::vector<std::string> doubts(const Settings& settings) {
  constexpr int64_t kCharacterBytes = 4, kOtherBytes = 1024;  // at most, not escaped; of the rest of a request
  std::vector<std::string> doubts;
  const int64_t needed_kb = (kCharacterBytes * settings.max_text_characters + kOtherBytes + 1023) / 1024;
  for (const auto& [name, kb] :
       {std::pair("max_body_kb", settings.max_body_kb), std::pair("max_message_kb", settings.max_message_kb)})
    if (kb < needed_kb && !settings.speech_model.empty())
      doubts.push_back(fmt::format(
          "'{}' is {}, and a text of 'max_text_characters' {}, of up to {} bytes each, may not fit; give {}, "
          "or fewer characters",
          name, kb, settings.max_text_characters, kCharacterBytes, needed_kb));
  return doubts;
}

std::string settings_as_toml(const Settings& settings) {
  std::string text = "# syrinx serve --config FILE\n";
  for (const Setting& setting : table()) {
    text += fmt::format("\n# {}.\n", setting.help);
    if (setting.in_file_only && !(settings.*std::get<Texts Settings::*>(setting.member)).empty()) {
      text += fmt::format("# There are some, which are not printed.\n# {} = [...]\n", setting.name);
      continue;
    }
    text += std::visit(
        [&](const auto& member) { return fmt::format("{} = {}\n", setting.name, written(settings.*member)); },
        setting.member);
  }
  return text;
}

std::string settings_as_markdown() {
  const Settings defaults;
  std::string text = "| key of the file | flag | value | default | meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const Setting& setting : table()) {
    std::string value = wanted(setting);
    if (setting.is_list()) value += fmt::format(", each {}", setting.value);
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
