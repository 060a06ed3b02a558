// Sound that a client says, on a slot's thread.  Where the model's streams are as good as its recordings it is heard
// while it comes, with the words of `syrinx transcribe --all-sound` up to two minutes of it, else it is collected until
// it ends and then heard as a recording is, with those of `syrinx transcribe`.  The reply is Wyoming's:
// transcript-start, a transcript-chunk for what has been settled since the last one, transcript, transcript-stop; or an
// error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/recognition/recogniser.h"
#include "server/host/recognition_job.h"
#include "server/wyoming/arriving_sound.h"
#include "server/wyoming/event.h"
#include "server/wyoming/utterance_stream.h"

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

  Status hear_stream(SlotWatch& watch);
  Status hear_parts(UtteranceStream& stream, SlotWatch& watch);
  Status hear_whole(SlotWatch& watch);
  Result<Transcript> transcribe(SlotWatch& watch);
  Status collect(const SoundSink& sink, SlotWatch& watch);
  void tell(std::string_view text, const std::string& language);
  void finish(std::string_view text, const std::string& language);
  void begin(const std::string& language);

  const UtteranceOrder order_;
  bool failed_ = false;
  size_t told_bytes_ = 0;  // of the words
  std::string last_;       // events that come with the end: a client may leave behind them, and the slot is free then
  int64_t ended_ns_ = 0;   // when the last of a sound was there that is heard as a whole
};

}  // namespace syrinx::server::wyoming
