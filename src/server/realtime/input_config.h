// Settings of a client's audio, in both dialects.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/http/json_fields.h"
#include "server/realtime/events.h"
#include "server/realtime/sound_format.h"

namespace syrinx::server::realtime {

// Rules for the beginning and end of a turn.
struct TurnDetection {
  bool is_semantic = false;          // as it was asked for: no model here judges the sense, so silence does
  std::string eagerness = "auto";    // of a semantic one: how much of it
  double threshold = 0.5;            // of a window's probability to be speech
  double prefix_padding_ms = 300;    // heard of the sound in front of speech
  double silence_duration_ms = 500;  // behind speech, that ends a turn
  bool create_response = true, interrupt_response = true;
  std::optional<double> idle_timeout_ms = {};

  double silence_ms() const;
};

struct Transcription {
  std::string model = {}, language = {};    // empty: the server's, and what the model finds out
  std::vector<std::string> languages = {};  // that are expected
  std::string told_language = {};           // that the recogniser is told for it; empty: none
  std::string prompt = {};                  // text before what is said; of models that take one
  std::vector<std::string> keywords = {};   // to be favoured; of models that can
  std::vector<std::string> ignored = {};    // fields that the model lacks: "prompt"
};

struct InputConfig {
  SoundFormat format = SoundFormat::kPcm;
  std::optional<Transcription> transcription = {};
  std::optional<TurnDetection> turns = {};  // absent: the client commits
  bool is_turns_given = false;              // by the client, be it null; else it is default_turns()
  std::vector<std::string> ignored = {};    // fields of the last event that the model lacks
};

// Capabilities of the server for this audio.
struct InputChecks {
  bool can_hear = false;    // else transcription and detection are taken and not heeded
  bool can_detect = false;  // turns
  std::function<Checked(Transcription&)> transcription = {};  // fills in told_language and ignored
};

inline constexpr size_t kMaxKeywords = 32, kMaxLanguages = 64;

// Default for sessions that do not set it.  Clients that name certain models of OpenAI's, which take no turn detection,
// commit by themselves: `model`, of the handshake, or the transcription's.
std::optional<TurnDetection> default_turns(const InputConfig& input, const InputChecks& checks, std::string_view model);

// The `input` of the released names' `audio`.
Checked take_input(const Json& value, const InputChecks& checks, InputConfig& input);
// A member of a session with beta names; others change nothing.
Checked take_beta_input(const JsonMember& member, const InputChecks& checks, InputConfig& input);

Json input_json(const InputConfig& input);  // `audio.input` of the released names
void add_beta_input(const InputConfig& input, Json& session);

}  // namespace syrinx::server::realtime
