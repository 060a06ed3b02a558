// Outcome of a speech, for the client, the metrics and the log.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "engine/speech/speech_session.h"
#include "server/host/slot_job.h"
#include "server/host/speech_model.h"

namespace syrinx::server {

struct SpeechOutcome {
  const char* event = "speech";  // of the log's line
  std::string id = {};           // of the request
  std::string model = {};
  const char* outcome = "error";          // or "done", "cancelled"
  std::string fault = {};                 // the server's, in the engine's words: for the log alone
  size_t characters = 0;                  // of the text
  double first_audio_s = 0;               // since the request
  std::vector<std::string> ignored = {};  // fields of the request that the model lacks
  SpeechStatistics statistics = {};
};

// The end of a spoken text, for metrics, log and client: finish_reason_name() of FinishCounts::worst().
const char* stop_reason(const SpeechStatistics& statistics);

void report_speech(const JobReports& reports, const SpeechOutcome& speech);

// An engine's error as the client is told it, who asked for `voice`: 404 where that has been deleted since it was
// found. Else it is one of those listed: what is not there, or is named by its file, is the server's fault.
HttpError speech_error(const Error& error, const SpeechModel& model, const std::string& voice);

}  // namespace syrinx::server
