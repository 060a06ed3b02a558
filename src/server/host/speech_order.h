// A text to be spoken for a client; filled by a protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "audio/encode/encoder.h"
#include "server/host/arriving_text.h"

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

struct SpeechOrder {
  SpeechRequest request;
  std::string voice = {};  // for the engine; found by Host::start_speech()
  std::string id = {};     // of the request
  int64_t arrived_ns = 0;
  std::shared_ptr<ArrivingText> text = {};  // spoken instead of request.input, where there is one
};

}  // namespace syrinx::server
