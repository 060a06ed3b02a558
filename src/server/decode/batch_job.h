// A recording of the transducer profile, POST /v2/decode/batch/MODEL, on a slot's thread: read, heard as `syrinx
// transcribe` hears it, and answered whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/recognition/transcript.h"
#include "server/decode/batch_request.h"
#include "server/host/recognition_job.h"

namespace syrinx::server::decode {

struct BatchOrder {
  std::string type = {};  // the Content-Type, which is taken
  std::string body = {};
  std::shared_ptr<const void> hold = {};  // of the room that the body takes, as long as the order lives
  Opaque opaque = {};                     // of the query; the body's own goes before
  double max_s = 30;
  std::string id = {};  // of the HTTP request
  int64_t arrived_ns = 0;
};

class BatchJob final : public RecognitionJob {
 public:
  BatchJob(std::shared_ptr<const RecognitionModel> model, BatchOrder order, JobReports reports);

 private:
  Status work(SlotWatch& watch) override;
  HttpError told(const Error& error) const override;
  bool fail_answer(const HttpError& error) override;
  void end_answer(bool complete) override;

  Status parse();
  Result<Transcript> transcribe(SlotWatch& watch);
  void answer(const Transcript& transcript);

  BatchOrder order_;
  BatchRequest request_;
  std::optional<HttpError> misuse_;
};

}  // namespace syrinx::server::decode
