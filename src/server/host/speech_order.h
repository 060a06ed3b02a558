// A text to be spoken for a client; filled by a protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audio/encode/encoder.h"
#include "engine/knobs.h"
#include "server/host/arriving_text.h"

namespace syrinx::server {

inline constexpr int kUsualRateHz = 24000;  // of an answer that names no rate

struct SpeechRequest {
  std::string input;
  std::string model;          // empty: the server's
  std::string voice;          // empty: the server's
  std::string language = {};  // that the voice is to speak, "en" or "en-GB"; empty: whichever it does
  AudioFormat format = AudioFormat::kMp3;
  Knobs knobs = {};                       // options of the model's family
  std::vector<std::string> ignored = {};  // fields that the model lacks
  bool events = false;                    // stream_format "sse"
  bool whole = false;                     // stream false: one answer with its length
  uint64_t seed = 0;
  int sample_rate_hz = kUsualRateHz;
  double volume = 1;  // times that of the model; what is too loud is clipped
};

struct SpeechOrder {
  SpeechRequest request;
  std::string voice = {};  // for the engine; found by Host::start_speech()
  std::string id = {};     // of the request
  int64_t arrived_ns = 0;
  std::shared_ptr<ArrivingText> text = {};  // spoken instead of request.input, where there is one
};

}  // namespace syrinx::server
