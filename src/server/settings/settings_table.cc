#include <algorithm>
#include <iterator>

#include "server/settings/settings.h"

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
      text("host", "ADDRESS", &Settings::host,
           "Address to listen on; one that other machines can reach needs an API key"),
      number("port", "N", &Settings::port, 0, 65535, "TCP port; 0: any free one"),
      number("wyoming_port", "N", &Settings::wyoming_port, -1, 65535,
             "TCP port of the Wyoming protocol, which has no keys; usually 10200; 0: any free one; -1: none"),
  };
}

Rows speech() {
  return {
      text("speech_model", "NAME|PATH", &Settings::speech_model,
           "Speech model: name of an installed one, folder or file; empty: none"),
      text("voice", "VOICE", &Settings::voice,
           "Voice for requests that name none, by name or file; empty: the model's default, or the first listed"),
      text("voices", "NAME=FILE", &Settings::voices, "Voices from files, besides those beside the model"),
      text("voice_names", "NAME=VOICE", &Settings::voice_names,
           "Aliases of voices: a request for NAME is spoken by VOICE"),
      text("voices_dir", "FOLDER", &Settings::voices_dir,
           "Folder for the voices that clients upload, with a folder for each model in it; auto: voices, beside the "
           "installed models; empty: uploads are refused"),
      number("max_voices", "N", &Settings::max_voices, 1, 1024, "Uploaded voices; further ones are refused with 409"),
      choice("precision", "TYPE", &Settings::precision, {"", "int8", "f32", "bf16", "int4"},
             "Arithmetic of the speech model; empty: its family's default"),
      number("threads", "N", &Settings::threads, 0, 64,
             "Threads of the speech model; 0: as many as there are cores, up to 8"),
      number("speech_slots", "N", &Settings::speech_slots, 1, 64,
             "Texts spoken at once; further ones are refused with 503"),
      flag("ignore_instructions", &Settings::ignore_instructions,
           "Without effect: fields that the model lacks are ignored unless `strict` is set"),
      flag("strict", &Settings::strict,
           "Refuse requests with fields that the model lacks, instead of ignoring them and naming them in "
           "X-Syrinx-Ignored"),
  };
}

Rows recognition() {
  return {
      text("recognition_model", "NAME|PATH", &Settings::recognition_model,
           "Recognition model: name of an installed one, folder or file; empty: none"),
      choice("recognition_precision", "TYPE", &Settings::recognition_precision, {"", "int8", "bf16", "f32"},
             "Arithmetic of the recognition model; empty: its family's default"),
      number("recognition_threads", "N", &Settings::recognition_threads, 0, 64,
             "Threads of the recognition model; 0: as many as there are cores, up to 8"),
      number("recognition_slots", "N", &Settings::recognition_slots, 1, 64,
             "Recordings and streams transcribed at once; further ones are refused with 503"),
      number("recognition_live_slots", "N", &Settings::recognition_live_slots, 0, 64,
             "Of these, slots that recordings leave to live audio; recordings may always use one"),
      flag("recognition_heartbeat", &Settings::recognition_heartbeat,
           "Run an idle recogniser on a little silence about every second, for 1 % of a core at most"),
      text("recognition_languages", "LANGUAGE", &Settings::recognition_languages,
           "Languages of the recognition model, e.g. en, for clients that name one; needed where its files list none"),
      flag("ignore_hints", &Settings::ignore_hints,
           "Without effect: fields that the model lacks are ignored unless `strict` is set"),
  };
}

Rows chat() {
  return {
      text("chat_model", "NAME|PATH", &Settings::chat_model,
           "Language model: name of an installed one, folder or file; empty: none"),
      choice("chat_precision", "TYPE", &Settings::chat_precision, {"", "int8", "f32", "bf16", "int4"},
             "Arithmetic of the language model; empty: its family's default"),
      number("chat_threads", "N", &Settings::chat_threads, 0, 64,
             "Threads of the language model; 0: as many as there are cores, up to 8"),
      number("chat_slots", "N", &Settings::chat_slots, 1, 64,
             "Conversations answered at once, each with memory for chat_context; further ones are refused with 503"),
      number("chat_context", "TOKENS", &Settings::chat_context, 0, 1048576,
             "Longest conversation with its answer, in tokens; 0: 4096, or what the model knows, if that is less"),
  };
}

Rows sessions() {
  return {
      number("live_load", "SHARE", &Settings::live_load, 0, 1,
             "Share of the computing time that live streams may need together, speech and recognition; a stream that "
             "would need more is refused with 503; 0: free slots alone decide"),
      number(
          "memory_budget_mb", "MB", &Settings::memory_budget_mb, 0, 1048576,
          "Memory for models together; for one that is asked for, idle ones are unloaded whose keep_alive lets them, "
          "else it is refused with 503; 0: no limit"),
      flag("weights_heartbeat", &Settings::weights_heartbeat,
           "Read a byte of each page of the weights every 2 s, for 2 % of a core at most: a hypervisor takes away what "
           "its guest does not use"),
      choice("realtime_dialect", "NAMES", &Settings::realtime_dialect, {"auto", "released", "beta"},
             "Names of the events of /v1/realtime; auto: as the client requests"),
      number("max_sessions", "N", &Settings::max_sessions, 1, 1024,
             "Sessions of /v1/realtime at once, each with a thread; further ones are refused with 503"),
      seconds("max_backlog_s", &Settings::max_backlog_s, 0.1, 3600,
              "Audio of a session that may wait for transcription or be ahead of the clock; more is refused with an "
              "error event"),
      seconds("max_clip_s", &Settings::max_clip_s, 0.1, 3600,
              "The same where turn_detection is null, as a client that commits may send a whole turn at once"),
      number("session_events_per_s", "N", &Settings::session_events_per_s, 1, 1000000,
             "Events a second that a session handles, on an average of 10 s; faster ones wait, and an invalid one "
             "counts four times"),
      number("session_kb_per_s", "KB", &Settings::session_kb_per_s, 1, 1048576,
             "Kilobytes of events a second that a session handles, likewise; audio at the pace of speech needs 64"),
      seconds("session_idle_s", &Settings::session_idle_s, 1, 86400,
              "A session is closed after so long without a request"),
      seconds("max_session_s", &Settings::max_session_s, 1, 86400, "A session is closed after so long"),
      number(
          "max_message_kb", "KB", &Settings::max_message_kb, 1, 65536,
          "Largest message of a WebSocket; messages above 1 MB count towards max_uploads_mb, which bounds them, too"),
  };
}

Rows decoding() {
  return {
      number("decode_end_byte", "N", &Settings::decode_end_byte, 0, 255,
             "Message of one byte that ends a stream of /v2/decode; some clients send 255"),
      number("decode_keepalive_byte", "N", &Settings::decode_keepalive_byte, 0, 255,
             "Message of one byte that keeps such a stream alive; some clients send 0"),
      number("decode_messages_per_s", "N", &Settings::decode_messages_per_s, 1, 1000000,
             "Messages a second that such a stream accepts, on an average of max_backlog_s"),
      seconds("decode_idle_s", &Settings::decode_idle_s, 1, 86400,
              "Such a stream is closed after so long without audio or a keepalive"),
      seconds("decode_max_batch_s", &Settings::decode_max_batch_s, 1, 3600, "Longest recording of /v2/decode/batch"),
  };
}

Rows upstream() {
  return {
      text("upstream", "URL", &Settings::upstream,
           "Language model that answers in sessions of /v1/realtime: base URL of an OpenAI-compatible interface, e.g. "
           "http://127.0.0.1:11434/v1; local:, or local:NAME: the chat_model of this server; empty: none"),
      text("upstream_model", "NAME", &Settings::upstream_model, "Name of the model there; empty: its default"),
      text("upstream_key_file", "FILE", &Settings::upstream_key_file, "File with the key for it"),
      text("upstream_ca_file", "FILE", &Settings::upstream_ca_file,
           "PEM file with certificates that vouch for it; empty: the system's"),
      text("upstream_instructions", "TEXT", &Settings::upstream_instructions,
           "Its first instructions; those of a session replace them"),
      choice("upstream_max_tokens_field", "NAME", &Settings::upstream_max_tokens_field,
             {"max_tokens", "max_completion_tokens"},
             "Its name for the limit of an answer; OpenAI's newer models accept only max_completion_tokens"),
      seconds("upstream_timeout_s", &Settings::upstream_timeout_s, 0.1, 3600,
              "A response fails after so long without a word from it, the first or a further one"),
      number("upstream_max_answer_kb", "KB", &Settings::upstream_max_answer_kb, 1, 1048576,
             "Largest answer as it arrives, with everything around its text"),
      number("upstream_history_items", "N", &Settings::upstream_history_items, 1, 512,
             "Newest items of a conversation that are sent, at most"),
      number("upstream_history_characters", "N", &Settings::upstream_history_characters, 1, 1048576,
             "Text of these items in all, at most; the newest is sent whatever its length"),
  };
}

Rows access() {
  return {
      secrets("api_keys", "KEY", &Settings::api_keys, "Keys of which a request must have one; empty: none is needed"),
      text("api_key_file", "FILE", &Settings::api_key_file, "File with more such keys, one a line"),
      flag("allow_no_key", &Settings::allow_no_key, "Listen without keys where other machines can connect"),
      text("tls_certificate", "FILE", &Settings::tls_certificate,
           "PEM file with the server's certificate and its chain: HTTP becomes HTTPS; read again on SIGHUP"),
      text("tls_key", "FILE", &Settings::tls_key, "PEM file with the certificate's private key, without a password"),
      flag("tls_self_signed", &Settings::tls_self_signed,
           "HTTPS with a certificate that the server makes and keeps in its data folder (tls); clients must be given "
           "it"),
      text("cors_origins", "ORIGIN", &Settings::cors_origins,
           "Other web origins whose pages may send requests, e.g. https://example.org; null, file://: pages from "
           "files; `*`: all"),
  };
}

Rows limits() {
  return {
      number("max_text_characters", "N", &Settings::max_text_characters, 1, 1000000,
             "Longest text to be spoken; over Wyoming it also has at most 256 kB"),
      number("max_body_kb", "KB", &Settings::max_body_kb, 1, 16384,
             "Largest JSON of a request; bodies above 64 KB count towards max_uploads_mb, which bounds them, too"),
      number("max_header_kb", "KB", &Settings::max_header_kb, 1, 60, "Largest request line with header"),
      number("max_upload_mb", "MB", &Settings::max_upload_mb, 1, 1024, "Largest request with a recording"),
      number("max_uploads_mb", "MB", &Settings::max_uploads_mb, 1, 65536,
             "All such requests together, arriving or in progress, with long bodies, messages and sound that waits; "
             "further ones are refused with 503"),
      seconds("max_recording_s", &Settings::max_recording_s, 1, 86400, "Longest recording"),
      seconds("max_utterance_s", &Settings::max_utterance_s, 1, 86400, "Longest utterance over Wyoming"),
      number("max_connections", "N", &Settings::max_connections, 1, 65536,
             "Open connections; further ones are refused"),
      number("max_connections_per_address", "N", &Settings::max_connections_per_address, 1, 65536,
             "Open connections from one address, or for IPv6 from one network of 64 bits"),
  };
}

Rows times() {
  return {
      seconds("idle_timeout_s", &Settings::idle_timeout_s, 0.1, 3600,
              "A connection is closed after so long without a request"),
      seconds("request_timeout_s", &Settings::request_timeout_s, 0.1, 3600,
              "A request must be complete so long after its first byte"),
      seconds("upload_timeout_s", &Settings::upload_timeout_s, 0.1, 3600,
              "A request with a recording must be complete so long after its header"),
      seconds("text_timeout_s", &Settings::text_timeout_s, 0.1, 86400,
              "A text or audio that comes in parts over Wyoming must be complete so long after its beginning"),
      seconds("stalled_reader_s", &Settings::stalled_reader_s, 0.1, 3600,
              "A client that reads nothing of its answer for so long is disconnected"),
      seconds("stuck_after_s", &Settings::stuck_after_s, 1, 3600,
              "After so long without a piece of speech, /health reports the engine as stuck"),
      also_called("--drain-timeout", seconds("drain_timeout_s", &Settings::drain_timeout_s, 0, 86400,
                                             "Time for answers in progress to end after SIGTERM")),
  };
}

Rows report() {
  return {
      choice("log", "LEVEL", &Settings::log, {"all", "info", "error", "off"},
             "JSON lines on the standard error: all: each request; info: all but balancers' polls of /health, /ready "
             "and /metrics; error: only faults; off: none"),
  };
}

}  // namespace

std::span<const Setting> setting_table() {
  static const Rows settings = [] {
    Rows all;
    for (Rows (*group)() :
         {place, speech, recognition, chat, sessions, decoding, upstream, access, limits, times, report})
      std::ranges::move(group(), std::back_inserter(all));
    return all;
  }();
  return settings;
}

}  // namespace syrinx::server
