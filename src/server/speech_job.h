// One request's way from its text to its bytes, on a slot's thread: session, encoder, answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/arriving_text.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/slots.h"
#include "server/speech_answer.h"
#include "server/speech_model.h"
#include "server/speech_request.h"

namespace syrinx::server {

// What is to be spoken, and for whom.
struct SpeechOrder {
  SpeechRequest request;
  std::string voice = {};  // for the engine
  std::string id = {};     // of the HTTP request
  int64_t arrived_ns = 0;
  std::shared_ptr<ArrivingText> text = {};  // spoken instead of request.input, where there is one
};

// Who hears what became of it; both must outlive the job.
struct SpeechReports {
  Metrics& metrics;
  RequestLog* log = nullptr;  // null: none
  bool faults_alone = false;  // nothing is logged but what the server is to blame for
};

class SpeechJob {
 public:
  SpeechJob(std::shared_ptr<const SpeechModel> model, SpeechOrder order, std::unique_ptr<SpeechAnswer> answer,
            SpeechReports reports);

  // The answer, which fills while run() works.  Cancelling it ends the work within the step that is being computed.
  const std::shared_ptr<ReplyStream>& reply() const { return answer_->reply(); }

  void run(SlotWatch& watch);
  // Says what run() has come to: after the slot is free.  Once.
  void end();

 private:
  Status speak(SlotWatch& watch);
  Result<std::unique_ptr<SpeechSession>> start();
  Status send(SpeechSession& session, SlotWatch& watch);
  Result<bool> next(SpeechSession& session, SpeechChunk& chunk, SlotWatch& watch);
  Status begin(const SpeechSession& session);
  size_t characters() const;
  void fail_with(const Error& error);
  void report() const;

  const std::shared_ptr<const SpeechModel> model_;
  const SpeechOrder order_;
  const SpeechReports reports_;
  const std::unique_ptr<SpeechAnswer> answer_;

  double first_audio_s_ = 0;
  SpeechStatistics statistics_ = {};
  const char* outcome_ = "error";
  std::string fault_;      // the server's, in the engine's words: for the log alone
  bool complete_ = false;  // the client has been given all that it is to get, be it an error
};

}  // namespace syrinx::server
