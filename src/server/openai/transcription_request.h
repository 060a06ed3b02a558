// The body of POST /v1/audio/transcriptions and /v1/audio/translations: OpenAI's fields, as docs/server.md lists them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/recognition/recogniser.h"
#include "engine/recognition/recognition_family.h"
#include "server/http/http_message.h"
#include "server/http/multipart.h"

namespace syrinx::server {

enum class TranscriptionFormat { kJson, kText, kSrt, kVtt, kVerboseJson };

struct TranscriptionRules {
  bool translated = false;  // of a translation, which takes fewer fields
  bool takes_keywords = true;
  const RecognitionFamily* family = nullptr;   // whose options are heeded; null: any family's
  std::span<const std::string> unheeded = {};  // options among them that the model lacks
  bool strict = false;                         // refuses what the model lacks; else it is ignored
};

struct TranscriptionRequest {
  std::string_view file;  // a view into the body
  std::string model;      // empty: the server's
  TranscriptionFormat format = TranscriptionFormat::kJson;
  bool events = false;                 // `stream`
  bool segments = false;               // of verbose_json
  bool separate_channels = false;      // each heard by itself
  std::vector<std::string> languages;  // that are expected
  std::vector<std::string> ignored;    // fields that the model lacks
  std::vector<std::string> keywords;   // also in options
  TranscribeOptions options;           // language, words, voice activity, favoured words, options of the family
};

using TranscriptionRequestOrError = tl::expected<TranscriptionRequest, HttpError>;

// Errors name the field, its limit and what to give instead.
TranscriptionRequestOrError parse_transcription_request(const std::vector<FormPart>& parts,
                                                        const TranscriptionRules& rules);

// The names of all fields that it knows, those with [] without their other names, and of those among them that no model
// heeds: refused, taken with the one value that changes nothing, or passed over.
std::vector<std::string> transcription_fields(bool translated);
std::vector<std::string> unheeded_transcription_fields();

}  // namespace syrinx::server
