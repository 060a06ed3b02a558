// One recording's way from its bytes to its words, on a slot's thread: form, decoder, recogniser, answer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/recognition/transcript.h"
#include "server/host/recognition_job.h"
#include "server/openai/transcription_request.h"

namespace syrinx::server {

// The body of a request, and for whom it is transcribed.
struct TranscriptionOrder {
  std::string type = {};  // its Content-Type
  std::string body = {};
  std::shared_ptr<const void> hold = {};  // of the room that the body takes, as long as the order lives
  bool translated = false;                // into English
  bool strict = false;                    // refuses fields that the model lacks; else they are ignored
  double max_recording_s = 0;
  std::string id = {};  // of the HTTP request
  int64_t arrived_ns = 0;
};

class TranscriptionJob final : public RecognitionJob {
 public:
  TranscriptionJob(std::shared_ptr<const RecognitionModel> model, TranscriptionOrder order, JobReports reports);

 private:
  Status work(SlotWatch& watch) override;
  HttpError told(const Error& error) const override;
  bool fail_answer(const HttpError& error) override;
  void end_answer(bool complete) override;

  Status parse();
  Result<Transcript> transcribe(SlotWatch& watch);
  void tell(const TranscriptSegment& segment, SlotWatch& watch);
  Status answer(const Transcript& transcript);

  TranscriptionOrder order_;

  TranscriptionRequest request_;     // views into the order's body
  std::optional<HttpError> misuse_;  // of the form
  bool bad_recording_ = false;       // the error is about the file
};

}  // namespace syrinx::server
