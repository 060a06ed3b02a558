// The operator's settings, in one table: from it come the flags of `syrinx serve`, the keys of its TOML file, the
// checks of both, the file that --print-config writes and the table in docs/server.md.
//
// A new setting: a member with its default, a row in settings_table.cc, and one in the schema of the chart
// (packaging/scale).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/families/default_models.h"
#include "server/settings/modules.h"

namespace syrinx::server {

struct Settings {
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  int64_t wyoming_port = -1;

  std::string speech_model = kDefaultModel;
  std::string voice = {};
  Texts voices = {};       // NAME=FILE
  Texts voice_names = {};  // NAME=VOICE
  std::string voices_dir = "auto";
  int64_t max_voices = 32;
  std::string precision = {};
  int64_t threads = 0;
  int64_t speech_slots = 4;
  bool strict = false;
  bool ignore_instructions = false;  // accepted, without effect

  std::string recognition_model = kDefaultRecogniser;
  std::string recognition_precision = {};
  int64_t recognition_threads = 0;
  int64_t recognition_slots = 4;
  int64_t recognition_live_slots = 1;
  bool recognition_heartbeat = false;
  Texts recognition_languages = {};
  bool ignore_hints = false;  // accepted, without effect

  std::string chat_model = {};
  std::string chat_precision = {};
  int64_t chat_threads = 0;
  int64_t chat_slots = 4;
  int64_t chat_context = 0;

  double live_load = 0.85;
  int64_t memory_budget_mb = 0;
  bool weights_heartbeat = false;

  std::string realtime_dialect = "auto";
  int64_t max_sessions = 64;
  double max_backlog_s = 10;
  double max_clip_s = 360;
  int64_t session_events_per_s = 400;
  int64_t session_kb_per_s = 2304;

  int64_t decode_end_byte = 0x00;
  int64_t decode_keepalive_byte = 0x01;
  int64_t decode_messages_per_s = 100;
  double decode_idle_s = 30;
  double decode_max_batch_s = 30;

  std::string upstream = {};
  std::string upstream_model = {};
  std::string upstream_key_file = {};
  std::string upstream_ca_file = {};
  std::string upstream_instructions =
      "You are heard, not read: answer in a few short sentences of plain speech, without lists, markup or emoji.";
  std::string upstream_max_tokens_field = "max_tokens";
  double upstream_timeout_s = 30;
  int64_t upstream_max_answer_kb = 8192;
  int64_t upstream_history_items = 64;
  int64_t upstream_history_characters = 32768;

  Texts api_keys = {};
  std::string api_key_file = {};
  bool allow_no_key = false;
  std::string tls_certificate = {};
  std::string tls_key = {};
  bool tls_self_signed = false;
  Texts cors_origins = {};

  int64_t max_text_characters = 200000;
  int64_t max_body_kb = 2400;
  int64_t max_message_kb = 22528;
  int64_t max_header_kb = 16;
  int64_t max_upload_mb = 25;
  int64_t max_uploads_mb = 200;
  double max_recording_s = 14400;
  double max_utterance_s = 300;
  int64_t max_connections = 1024;
  int64_t max_connections_per_address = 256;
  double idle_timeout_s = 75;
  double request_timeout_s = 30;
  double upload_timeout_s = 300;
  double text_timeout_s = 600;
  double stalled_reader_s = 30;
  double session_idle_s = 600;
  double max_session_s = 3600;
  double stuck_after_s = 60;
  double drain_timeout_s = 30;

  std::string log = "info";

  // Not of the table:
  std::vector<ModuleSettings> modules = {};  // `[[module]]` of the file
  std::string module_id = {};                // of a ModulePlan's settings: its name for clients; empty: by its model
  Texts module_names = {};                   // likewise, further ones
};

struct Setting {
  using Member = std::variant<std::string Settings::*, int64_t Settings::*, double Settings::*, bool Settings::*,
                              Texts Settings::*>;
  const char* name;   // of the file's key; the flag has '-' for '_'
  const char* value;  // what it is, in the help: "SECONDS"
  Member member;
  double min = 0, max = 0;  // of numbers
  const char* help;
  std::vector<std::string> choices = {};  // of texts: these alone, where there are any
  bool in_file_only = false;              // secrets, a list: no flag, which all users can read, and never printed
  const char* alias = nullptr;            // another name of the flag, "--drain-timeout"

  std::string flag() const;
  std::string flag_help() const;  // `help`, the values that it takes and, where it is short, the default
  bool is_flag() const { return std::holds_alternative<bool Settings::*>(member); }
  bool is_list() const { return std::holds_alternative<Texts Settings::*>(member); }
};

std::span<const Setting> setting_table();
const Setting* find_setting(std::string_view name);  // null: there is none

// kInvalidArgument: "WHERE is VALUE; give ...".  A whole number stands for a real one, too.
Status set(Settings& settings, const Setting& setting, const SettingValue& value, const std::string& where);
// The same of what stands on the command line: one text, of a list each of them.
Status set_from_texts(Settings& settings, const Setting& setting, const Texts& texts, const std::string& where);

// Checks that concern several settings or go beyond a setting's kind: a key, or consent, where other machines can
// connect, limits that agree, keys, origins, NAME=VALUE lists.
Status check(const Settings& settings);
// Most that the uploads of one address may hold together, long bodies and messages among them: half of max_uploads_mb,
// or one upload.
size_t upload_share_bytes(const Settings& settings);
// Warnings about valid settings with effects that the operator may not expect: whole sentences.
std::vector<std::string> doubts(const Settings& settings);
// Whether only this machine reaches that address.
bool is_loopback(std::string_view host);

// "name=value" of a list; kInvalidArgument naming the setting.
Result<std::pair<std::string, std::string>> split_pair(std::string_view text, std::string_view setting);

Status check_pairs(const Texts& texts, const char* setting);  // NAME=VALUE each
Status check_languages(const Texts& languages);               // as a client names one: "en", "en-GB", "zh-Hans"

std::string toml_escape(char32_t c);  // as a text in double quotes may hold it: \u00E9
std::string setting_as_toml(const SettingValue& value);
std::string settings_as_toml(const Settings& settings);  // with each setting's help, and without secrets
std::string settings_as_markdown();                      // the table of docs/server.md

}  // namespace syrinx::server
