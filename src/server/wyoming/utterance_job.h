// Sound that a client says, on a slot's thread: collected until it ends, and then heard as a recording is, so that its
// words are those of `syrinx transcribe`.  The reply is Wyoming's: transcript-start, a transcript-chunk for each
// segment, transcript, transcript-stop; or an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/recogniser.h"
#include "server/recognition_job.h"
#include "server/wyoming/arriving_sound.h"
#include "server/wyoming/event.h"

namespace syrinx::server::wyoming {

struct UtteranceOrder {
  std::shared_ptr<ArrivingSound> sound = {};
  std::string language = {};  // as TranscribeOptions::language
  double max_s = 0;           // of the sound
  std::string id = {};        // of the request
};

class UtteranceJob final : public RecognitionJob {
 public:
  UtteranceJob(std::shared_ptr<const RecognitionModel> model, UtteranceOrder order, JobReports reports);

 private:
  Status work(SlotWatch& watch) override;
  HttpError told(const Error& error) const override;
  bool fail_answer(const HttpError& error) override;
  void end_answer(bool complete) override;

  Result<Transcript> transcribe(SlotWatch& watch);
  Status collect(const SoundSink& sink, SlotWatch& watch);
  void tell(const TranscriptSegment& segment, SlotWatch& watch);
  void begin(const std::string& language);
  Status send(const Event& event);

  const UtteranceOrder order_;
  bool failed_ = false, any_text_ = false;
  std::string last_;      // events that come with the end: a client may leave behind them, and the slot is free then
  int64_t ended_ns_ = 0;  // when the last of the sound was there
};

}  // namespace syrinx::server::wyoming
