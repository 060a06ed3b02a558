// An utterance through a stream of the recogniser's, for models that lose nothing by it: bytes in as they come, words
// out as soon as they are settled.  On a slot's thread.
//
// One segment from its beginning to its end (an hour at most: EndpointChanges::kLongestS), whatever pauses are in it,
// so that its words are those of the whole; recordings beyond two minutes are heard in pieces, which this is not.  What
// waits of the sound counts for the metrics as that of sessions and streams does, and so does its first word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audio/decode/pcm_stream.h"
#include "audio/sound_limits.h"
#include "audio/stream_resampler.h"
#include "engine/recognition/recogniser.h"
#include "server/host/first_word.h"
#include "server/host/recognition_model.h"
#include "server/host/slot_job.h"
#include "server/host/waiting_sound.h"
#include "server/wyoming/arriving_sound.h"

namespace syrinx::server::wyoming {

class UtteranceStream {
 public:
  // All must outlive it, and what the reports name.  The sound counts as waiting from here on.
  UtteranceStream(const RecognitionModel& model, ArrivingSound& sound, const JobReports& reports);
  ~UtteranceStream();  // nothing of the sound is wanted any more
  UtteranceStream(const UtteranceStream&) = delete;
  UtteranceStream& operator=(const UtteranceStream&) = delete;

  // Before all else.  `language`: as TranscribeOptions::language.
  Status start(const std::string& language);
  // Whole samples of the sound, and when the last of them came.
  Status hear(std::span<const std::byte> some, int64_t came_ns, SlotWatch& watch);
  // That was all of it.
  Status finish(SlotWatch& watch);

  const std::string& text() const { return text_; }  // what is settled: it only grows
  const std::string& language() const { return stream_->language(); }
  double audio_s() const { return static_cast<double>(samples_) / kRecognitionRateHz; }  // that was heard
  double took_ms() const { return took_ms_; }                                            // with the engine
  std::optional<double> first_word_s() const { return first_word_s_; }                   // that it was waited for

 private:
  template <class Call>
  Status ask_engine(SlotWatch& watch, const Call& call);
  Status push(int64_t came_ns, SlotWatch& watch);
  void note_words();

  const RecognitionModel& model_;
  ArrivingSound& sound_;
  const std::shared_ptr<WaitingSound> waiting_;
  FirstWord first_word_;
  const std::string name_ = "the sound";
  const SoundLimits limits_;
  const SoundSink sink_;
  PcmStream decoder_;
  std::optional<StreamResampler> resampler_;
  std::vector<float> some_;  // at kRecognitionRateHz, to be heard
  uint64_t frames_ = 0;      // of the sound, that do not wait any more
  uint64_t samples_ = 0;     // that were heard
  std::unique_ptr<RecognitionStream> stream_;
  std::vector<RecognitionEvent> events_;
  std::string text_;
  size_t told_bytes_ = 0;  // of the open segment's text
  double took_ms_ = 0;
  std::optional<double> first_word_s_;
};

}  // namespace syrinx::server::wyoming
