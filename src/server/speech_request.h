// The body of POST /v1/audio/speech: OpenAI's fields and ours, as docs/server.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audio/encoder.h"
#include "server/http_message.h"

namespace syrinx::server {

struct SpeechRequest {
  std::string input;
  std::string model;          // empty: the server's
  std::string voice;          // empty: the server's
  std::string language = {};  // that the voice is to speak, "en" or "en-GB"; empty: whichever it does
  std::string instructions;
  AudioFormat format = AudioFormat::kMp3;
  double speed = 1;
  bool events = false;  // stream_format "sse"
  bool whole = false;   // stream false: one answer with its length
  uint64_t seed = 0;
  int sample_rate_hz = 24000;
  std::optional<double> temperature = {};
};

struct SpeechLimits {
  size_t max_text_characters = 4096;
  bool ignore_instructions = false;
};

using SpeechRequestOrError = tl::expected<SpeechRequest, HttpError>;

// Errors name the field, its limit and what to give instead.
SpeechRequestOrError parse_speech_request(std::string_view body, const SpeechLimits& limits);

// The names of all fields that it knows, and of those among them that no model heeds: refused unless absent or empty.
std::vector<std::string> speech_fields();
std::vector<std::string> unheeded_speech_fields();

const char* media_type(AudioFormat format);  // "audio/mpeg"

}  // namespace syrinx::server
