// One request's way from its text to its bytes, on a slot's thread: session, encoder, reply.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/metrics.h"
#include "server/reply_stream.h"
#include "server/request_log.h"
#include "server/slots.h"
#include "server/speech_model.h"
#include "server/speech_request.h"

namespace syrinx::server {

class SpeechJob {
 public:
  // The metrics and the log (null: none) must outlive it.
  SpeechJob(std::shared_ptr<const SpeechModel> model, SpeechRequest request, std::string voice, std::string id,
            int64_t arrived_ns, Metrics& metrics, RequestLog* log);

  // The answer, which fills while run() works.  Cancelling it ends the work within the step that is being computed.
  const std::shared_ptr<ReplyStream>& reply() const { return reply_; }

  void run(SlotWatch& watch);
  // Says what run() has come to: after the slot is free.  Once.
  void end();

 private:
  tl::expected<void, HttpError> speak(SlotWatch& watch);
  tl::expected<std::unique_ptr<SpeechSession>, HttpError> start();
  Status send(SpeechSession& session, SlotWatch& watch);
  ByteSink sink();
  Status begin();
  Status finish(SpeechSession& session);
  std::string type() const;
  void tell() const;

  const std::shared_ptr<const SpeechModel> model_;
  const SpeechRequest request_;
  const std::string voice_, id_;
  const int64_t arrived_ns_;
  Metrics& metrics_;
  RequestLog* const log_;
  const std::shared_ptr<ReplyStream> reply_ = std::make_shared<ReplyStream>();

  std::vector<std::byte> memory_;  // of a whole answer
  double first_audio_s_ = 0;
  SpeechStatistics statistics_ = {};
  const char* outcome_ = "error";
};

}  // namespace syrinx::server
