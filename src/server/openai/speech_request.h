// The body of POST /v1/audio/speech: OpenAI's fields and ours, as docs/server.md lists them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audio/encode/encoder.h"
#include "engine/speech/speech_family.h"
#include "server/host/speech_order.h"
#include "server/http/http_message.h"

namespace syrinx::server {

struct SpeechLimits {
  size_t max_text_characters = 4096;
  const SpeechFamily* family = nullptr;            // of the model; null: not known yet, and it takes every option
  std::span<const std::string_view> lacking = {};  // options of the family that the model does not take, borrowed
  bool strict = false;                             // refuses what the model lacks; else it is ignored
};

using SpeechRequestOrError = tl::expected<SpeechRequest, HttpError>;

// Errors name the field, its limit and what to give instead.
SpeechRequestOrError parse_speech_request(std::string_view body, const SpeechLimits& limits);

// The names of all fields that it knows, and of those among them that no model has.
std::vector<std::string> speech_fields();
std::vector<std::string> unheeded_speech_fields();

const char* media_type(AudioFormat format);  // "audio/mpeg"

}  // namespace syrinx::server
