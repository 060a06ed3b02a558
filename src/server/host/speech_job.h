// One request's way from its text to its bytes, on a slot's thread: session, encoder, answer.
#pragma once

#include <memory>
#include <string>

#include "server/host/slot_job.h"
#include "server/host/speech_answer.h"
#include "server/host/speech_model.h"
#include "server/host/speech_order.h"

namespace syrinx::server {

class SpeechJob final : public SlotJob {
 public:
  SpeechJob(std::shared_ptr<const SpeechModel> model, SpeechOrder order, std::unique_ptr<SpeechAnswer> answer,
            JobReports reports);

  const std::shared_ptr<ReplyStream>& reply() const override { return answer_->reply(); }

 private:
  Status work(SlotWatch& watch) override;
  const char* what() const override { return "a speech"; }
  HttpError told(const Error& error) const override;
  bool fail_answer(const HttpError& error) override { return answer_->fail(error); }
  void end_answer(bool complete) override { answer_->end(complete); }
  void report() const override;
  Result<std::unique_ptr<SpeechSession>> start();
  Status send(SpeechSession& session, SlotWatch& watch);
  Result<bool> next(SpeechSession& session, SpeechChunk& chunk, SlotWatch& watch);
  void note_made(const SpeechSession& session, SlotWatch& watch);
  Status begin(const SpeechSession& session);
  size_t characters() const;

  const std::shared_ptr<const SpeechModel> model_;
  const SpeechOrder order_;
  const std::unique_ptr<SpeechAnswer> answer_;

  bool has_format_ = true;                 // false: nothing here makes the format that is asked for
  double first_audio_s_ = 0, made_s_ = 0;  // audio that the watch knows of
  SpeechStatistics statistics_ = {};
};

}  // namespace syrinx::server
