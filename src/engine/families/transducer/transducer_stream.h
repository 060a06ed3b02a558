// A stream of sound through a transducer: its labels as they are found, cut into segments by the endpointing rules, for
// which voice also counts where it is known.  The step allocates nothing, whatever it finds; what a result needs is
// spelled behind the step in which its labels were found, so that nobody's chunk waits for it.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/families/transducer/transducer_frames.h"
#include "engine/families/transducer/transducer_recogniser.h"
#include "engine/recognition/endpointing.h"
#include "engine/recognition/voice_track.h"
#include "models/transducer/words.h"

namespace syrinx {

class TransducerStream final : public RecognitionStream {
 public:
  using Rules = TransducerRecogniser::StreamRules;
  TransducerStream(std::shared_ptr<TransducerRecogniser> recogniser, TransducerRecogniser::StreamPlace place,
                   Rules rules);

  Status push(std::span<const float> samples, std::vector<RecognitionEvent>& events) override;
  Status finish(std::vector<RecognitionEvent>& events) override;
  Status commit(std::vector<RecognitionEvent>& events) override;
  const std::string& language() const override { return language_; }

 private:
  // A segment that is over and not yet told.
  struct Ended {
    size_t end = 0;  // of its labels, among all of those segments
    EndpointReason over = {};
    bool paused = false;  // nobody spoke behind it
  };

  void heard();
  void end_segment(EndpointReason over);
  void tell_ended(std::vector<RecognitionEvent>& events);
  void leave();
  Status failed();
  bool is_text(const transducer::Emission& emission) const;
  double end_s(const transducer::Emission& emission) const;  // of the stream
  double frame_s() const;
  double decoded_s() const;
  void note(std::span<const transducer::Emission> fresh);
  void report(std::span<const transducer::Emission> labels, std::optional<EndpointReason> over,
              std::vector<RecognitionEvent>& events);
  Status status() const;

  std::shared_ptr<TransducerRecogniser> recogniser_;
  const Scheduler::Open open_;
  TransducerRecogniser::StreamPlace place_;
  const Rules rules_;
  std::string language_;
  LabelTrack track_;                         // with the labels of the segment
  size_t noted_ = 0;                         // of them
  std::vector<transducer::Emission> ended_;  // of all segments that are over and not yet told
  std::vector<Ended> ends_;
  bool changed_ = false;                 // there are labels of text that no event has told
  std::unique_ptr<FrameSource> frames_;  // null when the stream has ended or failed
  std::optional<VoiceTrack> voice_;
  const size_t most_labels_;  // of a segment
  Endpointer endpointer_;
  int32_t end_of_utterance_ = -1, end_of_backchannel_ = -1;  // labels; -1: the model has none
  uint64_t segment_ = 0;
  bool behind_pause_ = false;  // nobody has spoken since the last segment that was told
  std::string reported_;       // of the segment, last
  Stopwatch arrival_;          // of the sound that is being pushed
  bool finished_ = false;
};

}  // namespace syrinx
