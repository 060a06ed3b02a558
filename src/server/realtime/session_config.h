// A client's settings of a session, in both dialects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/http/http_message.h"
#include "server/http/json_fields.h"
#include "server/realtime/events.h"
#include "server/realtime/input_config.h"
#include "server/realtime/sound_format.h"

namespace syrinx::server::realtime {

inline constexpr size_t kMaxInstructionBytes = size_t{64} << 10;

struct OutputConfig {
  bool is_spoken = true;  // else text alone
  SoundFormat format = SoundFormat::kPcm;
  std::string voice = {};  // as the client calls it; empty: the server's
  double speed = 1;
  std::vector<std::string> ignored = {};  // fields of the last event that the model lacks
};

struct SessionConfig {
  bool is_transcription = false;  // of type `transcription`, which nothing is spoken in
  InputConfig input = {};
  OutputConfig output = {};
  std::string instructions = {};  // for whatever makes the replies
  int64_t max_output_tokens = 0;  // of a reply; 0: as many as it likes
};

// Capabilities of the server for these settings.
struct OutputChecks {
  std::function<Checked(const std::string& voice)> voice = {};  // whether there is such a voice
  bool has_speed = true;                                        // else it speaks at 1 alone
  bool strict = false;  // refuses fields that the model lacks; else they are ignored
};

// Takes what `fields`, the `session` of a session.update, sets; all or, on an error, nothing of it.  `config` then
// names the fields that were ignored.
Checked update_session(const Json& fields, const OutputChecks& output_checks, const InputChecks& input_checks,
                       SessionConfig& config);
// The same of the `response` of a response.create, as far as it is about the sound.
Checked update_output(const Json& fields, const OutputChecks& checks, OutputConfig& output);

// "inf", which is 0, or a whole number.
Checked take_max_tokens(const Json& value, const char* field, int64_t& tokens);

// Names of the last update's fields that the models lack.
std::vector<std::string> ignored_fields(const SessionConfig& config);

// The session as session.created tells it, without its id.
Json session_json(const SessionConfig& config, const std::string& model, Dialect dialect);
Json output_json(const OutputConfig& output);  // `audio.output` of the released names
Json modalities_json(const OutputConfig& output, Dialect dialect);

}  // namespace syrinx::server::realtime
