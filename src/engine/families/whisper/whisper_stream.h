// A stream through Whisper, which hears windows, not streams (spec whisper.md, section 7): the sound since the last
// endpoint is decoded as a whole every kPeriodSamples at least, what two decodings in a row agree on is stable, and
// voice activity, or else the words, says when the segment is over.
//
// Where voice activity is known, a pause of kPauseSamples is decoded at once, half a period behind the decoding before
// at the earliest, and silence behind that is not decoded again.  So the words of an utterance are mostly there when
// its closing silence ends.
//
// All happens at places that the sound alone determines, ends of periods and of voice activity's windows, so the sizes
// of the pushes change nothing but latency.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/due.h"
#include "engine/recognition/endpointing.h"
#include "engine/recognition/local_agreement.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/sound_pace.h"
#include "engine/schedule/scheduler.h"
#include "models/silero/speech_detector.h"
#include "models/whisper/transcriber.h"

namespace syrinx {

class WhisperRecogniser;

class WhisperStream final : public RecognitionStream {
 public:
  static constexpr size_t kPeriodSamples = 11'200;  // 0.7 s
  static constexpr size_t kPrerollSamples = 8'000;  // kept of the silence before speech, also across an endpoint
  static constexpr size_t kPauseSamples = 6 * silero::kWindowSamples;  // 0.19 s

  // Dictation pauses; a reader's sentence ends.
  static constexpr EndpointOptions kEndpoints = {
      .silence_s = EndpointOptions::kNever, .silence_after_speech_s = 0.6, .max_utterance_s = 60, .settle_s = 0};

  // `timed_tokens`: the words have theirs.  `voice`: what counts as speech, where the recogniser has a gate.
  // `is_wanted`: of TranscribeOptions.
  WhisperStream(std::shared_ptr<WhisperRecogniser> recogniser, const whisper::TranscriberSettings& settings,
                bool timed_tokens, const std::optional<silero::SegmentOptions>& voice, const EndpointOptions& endpoints,
                std::function<bool()> is_wanted);

  Status push(std::span<const float> samples, std::vector<RecognitionEvent>& events) override;
  Status finish(std::vector<RecognitionEvent>& events) override;
  Status commit(std::vector<RecognitionEvent>& events) override;
  const std::string& language() const override { return language_; }

 private:
  double buffer_begin_s() const;
  uint64_t now() const { return buffer_begin_ + buffer_.size(); }
  double now_s() const;
  size_t samples_to_check() const;
  void watch_voice(std::span<const float> samples);
  void note_window(uint64_t judged_before);
  bool is_settled() const { return detector_ && loud_end_ + kPauseSamples <= decoded_end_; }
  bool is_step() const;
  bool hear();
  bool decode();
  void trim();
  void drop_before(uint64_t sample);
  void close(EndpointReason over, size_t keep, std::vector<RecognitionEvent>& events);
  void cut(std::vector<RecognitionEvent>& events);
  Status close_all(EndpointReason over, std::vector<RecognitionEvent>& events);
  void tell(std::optional<EndpointReason> over, std::vector<RecognitionEvent>& events);
  void keep_language(const TranscriptSegment& result);

  const std::shared_ptr<WhisperRecogniser> recogniser_;
  const Scheduler::Open open_;
  whisper::TranscriberSettings settings_;
  const bool timed_tokens_;
  const std::function<bool()> is_wanted_;
  std::string language_;

  std::optional<silero::SpeechDetector> detector_;
  silero::VadScratch vad_scratch_;
  std::vector<silero::SpeechEvent> voice_events_;
  double quiet_below_ = 0;    // a window of such a probability is silence
  uint64_t loud_end_ = 0;     // of the last window that is not
  uint64_t decoded_end_ = 0;  // of the sound that has been decoded

  std::vector<float> buffer_;  // since the endpoint, or the last trim
  uint64_t buffer_begin_ = 0;  // its first sample
  size_t since_step_ = 0;      // samples of the buffer that came since the last step
  Endpointer endpointer_;
  LocalAgreement agreement_;
  std::vector<TranscriptWord> committed_;  // of this segment
  bool told_ = false;                      // a partial result of this segment: the last one's
  std::string told_text_;
  size_t told_stable_ = 0;
  uint64_t segment_ = 0;
  Stopwatch arrival_;  // of the samples at hand
  SoundPace pace_;
  int64_t due_ns_ = kDueAtOnce;  // the next decoding
};

}  // namespace syrinx
