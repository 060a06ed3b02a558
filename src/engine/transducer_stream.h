// A stream of sound through a transducer: its labels as they are found, cut into segments by the endpointing rules, for
// which voice also counts where it is known.
#pragma once

#include <memory>

#include "base/clock.h"
#include "engine/endpointing.h"
#include "engine/transducer_frames.h"
#include "engine/transducer_recogniser.h"
#include "engine/voice_track.h"
#include "models/transducer/words.h"

namespace syrinx {

class TransducerStream final : public RecognitionStream {
 public:
  struct Rules {
    TransducerRecogniser::Tree boost = {};             // null: nothing is favoured
    bool words = false;                                // their times are told
    std::optional<silero::SegmentOptions> voice = {};  // where the recogniser has a gate: what counts as speech
    EndpointOptions endpoints = {};
    TransducerRecogniser::Prompt prompt = {};  // of models that are told a language
  };
  TransducerStream(std::shared_ptr<TransducerRecogniser> recogniser, TransducerRecogniser::StreamPlace place,
                   Rules rules);

  Status push(std::span<const float> samples, std::vector<RecognitionEvent>& events) override;
  Status finish(std::vector<RecognitionEvent>& events) override;
  Status commit(std::vector<RecognitionEvent>& events) override;
  const std::string& language() const override { return language_; }

 private:
  void heard(std::vector<RecognitionEvent>& events);
  void leave();
  double frame_s() const;
  double decoded_s() const;
  void note(std::span<const transducer::Emission> fresh);
  void report(bool is_final, std::vector<RecognitionEvent>& events);
  Status status() const;

  std::shared_ptr<TransducerRecogniser> recogniser_;
  TransducerRecogniser::StreamPlace place_;
  const Rules rules_;
  std::string language_;
  LabelTrack track_;                     // with the labels of the segment
  size_t noted_ = 0;                     // of them
  bool changed_ = false;                 // there are labels that no event has told
  std::unique_ptr<FrameSource> frames_;  // null when the stream has ended or failed
  std::optional<VoiceTrack> voice_;
  Endpointer endpointer_;
  int32_t end_of_utterance_ = -1, end_of_backchannel_ = -1;  // labels; -1: the model has none
  uint64_t segment_ = 0;
  std::string reported_;  // of the segment, last
  Stopwatch arrival_;     // of the sound that is being pushed
  bool finished_ = false;
};

}  // namespace syrinx
