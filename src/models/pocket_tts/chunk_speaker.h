// Speaks chunks of text after voices, a frame of 80 ms at a time: language model, flow head, end of speech and codec in
// the order of the maker's loop (spec pocket-tts.md, section 6; the maker's pocket_tts/models/tts_model.py).
//
//   begin(stream, voice, ids)   behind the voice's positions, the text in one pass, a fresh codec
//   next(frames)                one frame of each of the streams named, until a stream says that there is none
//
// Streams that are spoken together share the reading of the weights; each gets, to the last bit, the samples that it
// gets alone.  With two threads and one stream the codec's frame n and the language model's step n + 1 run side by
// side, from the second frame on: the first is not to wait for a step that it does not need.  One is bound by
// arithmetic, the other by memory, and who has finished helps the other (nn/crew.h).
//
// Weights and voices are shared and constant; a ChunkSpeaker is used from one thread, on the runner's team.  next()
// allocates nothing; begin() does only when a chunk needs more positions than any before it in that stream, or the
// stream was released.
#pragma once

#include <memory>
#include <span>

#include "models/mimi/decoder.h"
#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"
#include "models/pocket_tts/speech_end.h"

namespace syrinx::pocket {

// A chunk's first samples rise in a straight line from 0 to 1, against the click of a fresh codec.
inline constexpr size_t kFadeInSamples = 120;
// Multiplies a chunk's next samples by it; `risen` counts those that it has had.
void fade_in_chunk(std::span<float> samples, size_t& risen);

class ChunkSpeaker {
 public:
  // The runner is borrowed and must outlive this.  1 to kMaxStreams streams, all with this schedule at first.
  ChunkSpeaker(const std::shared_ptr<const FlowLmWeights>& flow,
               const std::shared_ptr<const mimi::DecoderWeights>& codec, const FlowSchedule& schedule,
               nn::Runner& runner, size_t streams = 1);
  ~ChunkSpeaker();

  size_t latent() const { return weights_->latent; }                          // numbers of noise a frame
  size_t frame_samples() const { return decoder_.config().frame_samples(); }  // 24 kHz, mono
  size_t streams() const { return streams_.size(); }

  // For the chunks begun from now on until the stream is released.  Allocates.
  void set_schedule(size_t stream, const FlowSchedule& schedule);
  // Gives back the memory of a stream that is not needed for now; begin() takes it again.  From any thread, as long as
  // nothing else is asked of that stream.
  void release(size_t stream);

  // Starts a chunk; what the stream's last one still had to say is dropped.  frames_after: speech_end.h.
  // kInvalidArgument: a voice of another model, a token that the table does not have.  kLimitExceeded: voice, text and
  // speech together need more than kMaxPositions.  `between` is called between parts of a long text, of a few
  // milliseconds each: meanwhile this object may serve other streams.
  Status begin(size_t stream, std::shared_ptr<const FlowLmState> voice, std::span<const int32_t> ids,
               float eos_threshold, size_t frames_after, const nn::BetweenJobs& between = {});

  struct Frame {
    size_t stream;
    std::span<const float> noise;  // [latent()]
    std::span<float> samples;      // [frame_samples()]; they may exceed 1
    bool spoken = false;           // given back; false, and no samples, once the chunk has been spoken
  };
  // One frame of each of some different streams.  The call that finds a chunk's end has used its noise.
  void next(std::span<Frame> frames);
  bool next(size_t stream, std::span<const float> noise, std::span<float> samples);

  // Steps and frames of the chunk begun last, and whether the model ended it or the limit did.
  const SpeechEnd& end(size_t stream) const { return streams_[stream].end; }
  // The language model computed something that is not a number, which a narrow type may hide from the samples.
  bool faulty(size_t stream) const { return streams_[stream].faulty; }

 private:
  struct Stream {
    FlowLmState state;
    mimi::DecoderState codec;
    SpeechEnd end{0.0f, 0, 0};
    FlowHead* head = nullptr;
    bool faulty = false;
    bool stepped = false;       // the next step has been computed already:
    std::vector<float> hidden;  // [Z]
    float logit = 0.0f;
    std::vector<float> latent, denormalised;  // [X], of the frame before
    size_t risen = 0;                         // samples of the chunk's rise so far
  };
  struct Solo;

  void name_steps(std::span<Stream* const> streams);
  void keep_steps(std::span<Stream* const> streams, const FlowLm::Steps& steps);
  void sample_streams();
  FlowHead& head_of(const FlowSchedule& schedule);
  void decode();

  std::shared_ptr<const FlowLmWeights> weights_;
  nn::Runner& runner_;
  FlowLm flow_;
  std::vector<std::unique_ptr<FlowHead>> heads_;  // one a number of evaluations
  FlowHead* first_head_;                          // of the schedule that all streams have at first
  mimi::Decoder decoder_;
  std::vector<std::unique_ptr<Solo>> solos_;  // one a member, if there are several
  std::vector<Stream> streams_;
  // Scratch of a call, [streams].
  std::vector<Stream*> waiting_;
  std::vector<FlowLm::Stream> steps_;
  std::vector<FlowHead::Stream> samples_;
  std::vector<Frame*> spoken_;
  std::vector<mimi::Decoder::Frame> frames_;
};

}  // namespace syrinx::pocket
