// From the sound of a stream to the labels of a transducer, as soon as they are certain.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/families/transducer/chunk_pool.h"
#include "engine/recognition/recogniser.h"
#include "engine/recognition/sound_pace.h"
#include "engine/schedule/scheduler.h"
#include "models/transducer/encoder.h"
#include "models/transducer/head_decoder.h"
#include "models/transducer/model.h"
#include "models/transducer/stream_encoder.h"
#include "nn/runner.h"

namespace syrinx {

// What a stream's decoder remembers and has found; the stream's own.
struct LabelTrack {
  explicit LabelTrack(const transducer::DecoderWeights& weights) : state(weights) {}
  transducer::HeadState state;
  std::vector<transducer::Emission> found;
};

// One stream's; one thread.  What is found does not depend on how the sound was cut, unless it is flushed.
class FrameSource {
 public:
  // Frames that are decoded at once, at most, so that what follows may begin anew where an utterance ends.
  static constexpr size_t kFramesAtOnce = 4;
  // Frames [n, d] of the encoder that follow those before and have been decoded: their labels are in the track.  Valid
  // in the call, which may clear the track's labels and have its state forget them; it may come from another stream's
  // thread, while this one waits.
  using Sink = ChunkPool::Sink;

  virtual ~FrameSource() = default;
  // When what is pushed, flushed or finished next has come, by system_clock(): its steps are due by that
  // (sound_pace.h).
  void sound_came(int64_t at_ns) { came_ns_ = at_ns; }
  virtual void push(std::span<const float> samples, const Sink& sink) = 0;
  // All whole frames of what has been pushed, at once; those that would have waited for sound behind them have heard
  // less of it than they would have.  They do not come again; the sound goes on behind them.
  virtual void flush(const Sink& sink) = 0;
  // The end of the sound: all that is left.  Nothing may be pushed afterwards.
  virtual void finish(const Sink& sink) = 0;
  // Frames that the sink sees, at most, in a push of a second, a flush or the end.
  virtual size_t most_frames() const = 0;

 protected:
  // Of the next chunk of the stream; of one that is heard before it is full.
  int64_t next_due_ns(double chunk_s) { return pace_.due_ns(came_ns_, chunk_s); }
  int64_t early_due_ns(double chunk_s) const { return came_ns_ + static_cast<int64_t>(chunk_s * 1e9); }

 private:
  SoundPace pace_;
  int64_t came_ns_ = kDueAtOnce;
};

// What the features of a sound take; grows to the longest one.
struct SoundRoom {
  nn::Plane mels;
  transducer::Features::Room features;
};

// What streams in windows borrow for their calls, in their turn, and the heartbeat.
struct WindowTools {
  StepQueue& queue;  // in whose turns all that follows is used
  nn::Runner& runner;
  transducer::Encoder& encoder;
  transducer::HeadDecoder& decoder;
  SoundRoom& room;
  StepQueue* line = nullptr;  // for these tools where others use them too: a turn of it comes before the team's
};

// How a sound is encoded.
struct EncodeOptions {
  std::optional<transducer::AttentionContext> context = {};  // absent: the model's first one
  std::optional<size_t> prompt = {};  // what a model that is told a language is; absent: its fallback
  transducer::BetweenJobs between = {};
};

// For models whose frames see the whole recording (spec transducer-asr.md, section 3.7): windows of sound that is known
// (10 s of it), to be decoded (2 s) and that follows (2 s), features and frames computed as of recordings of their own.
// The first window has nothing before it, the last one nothing behind it and so much more before it.  These are the
// windows of the maker's script for buffered streaming, but that its last one begins within a frame where the sound
// does not end with one.  Models that were trained on chunks with frames behind them take the sizes of their own menu,
// and within a window the mask that they were trained with (section 3.8), which counts its chunks from the window's
// beginning.  A push allocates nothing but what the track's labels lack, once a window of that size has been encoded.
class WindowedFrames final : public FrameSource {
 public:
  // What a model's streams are heard in where nobody asks for something else.
  static StreamWindow usual(const transducer::Config& config);
  // kInvalidArgument for windows beyond the limits of StreamWindow, and for those that are not on the model's menu.
  static Status check(const transducer::Config& config, const StreamWindow& window);

  // check() holds.  The track is borrowed.  `prompt`: what the stream is told, of models that are told a language.
  WindowedFrames(std::shared_ptr<const transducer::Model> model, const StreamWindow& window, const WindowTools& tools,
                 LabelTrack& track, std::optional<size_t> prompt = {});

  // Runs a window of silence as long as they get and one as short as the first of a stream, so that no push waits for
  // memory; check() holds.
  static void warm_up(const transducer::Model& model, const StreamWindow& window, const WindowTools& tools);

  void push(std::span<const float> samples, const Sink& sink) override;
  void flush(const Sink& sink) override;
  void finish(const Sink& sink) override;
  size_t most_frames() const override;

 private:
  struct Frames {
    Frames(const transducer::Config& config, const StreamWindow& window);
    std::optional<transducer::AttentionContext> context(const transducer::Config& config) const;
    size_t left, chunk, right;
  };

  double chunk_s() const { return static_cast<double>(chunk_) / kRecognitionRateHz; }
  void decode(size_t chunk, int64_t due_ns, const Sink& sink);

  std::shared_ptr<const transducer::Model> model_;
  const WindowTools tools_;
  LabelTrack& track_;
  EncodeOptions encode_;
  size_t frame_;                 // samples of one of the encoder's
  size_t left_, chunk_, right_;  // samples, whole frames
  std::vector<float> sound_;     // from the window's beginning on
  size_t known_ = 0;             // of them, decoded
};

// For cache-aware models: chunk by chunk, each frame computed once, together with the chunks of other streams.  Where
// blocks see ahead, frames come that much later (encoder_state.h).  A push allocates nothing but what the track's
// labels lack, a flush does.
class ChunkedFrames final : public FrameSource {
 public:
  // Whether a model can be streamed so: it must have been trained for it, and take features as they are.
  static bool fits(const transducer::Config& config);
  static bool fits(const transducer::Model& model) { return fits(model.config()); }

  // fits() holds.  The model, the pool made for it and the track are borrowed.  `prompt`: as of WindowedFrames.
  ChunkedFrames(const transducer::Model& model, ChunkPool& pool, LabelTrack& track, std::optional<size_t> prompt = {});

  void push(std::span<const float> samples, const Sink& sink) override;
  void flush(const Sink& sink) override;
  void finish(const Sink& sink) override;
  size_t most_frames() const override;

 private:
  size_t wanted() const { return state_.started() ? chunk_mels_ : first_mels_; }
  View<float, 2> room() { return {mels_.f32(filled_), {wanted() - filled_, mels_.channels()}, {mels_.stride(), 1}}; }
  void step(bool last, const Sink& sink);
  double chunk_s() const { return static_cast<double>(pool_.chunk_frames() * frame_) / kRecognitionRateHz; }
  void give(transducer::EncoderState& state, bool last, size_t end, int64_t due_ns, const Sink& sink);

  const transducer::EncoderConfig& config_;
  ChunkPool& pool_;
  LabelTrack& track_;
  transducer::FeatureStream features_;
  transducer::EncoderState state_;
  size_t frame_;  // samples of one of the encoder's
  size_t first_mels_, chunk_mels_;
  nn::Plane mels_;  // of the chunk that is being filled
  size_t filled_ = 0;
  size_t given_ = 0;  // frames of the stream that have been given
  nn::Plane frames_;  // of the chunk that was heard
};

// The encoder's frames [n, d] of a whole sound; none for less than one frame of features.  Valid until the next call of
// the encoder.
View<const float, 2> encode_sound(const transducer::Model& model, std::span<const float> sound, SoundRoom& room,
                                  transducer::Encoder& encoder, nn::Runner& runner, const EncodeOptions& options = {});

// A tenth of a second of silence all of the way, which keeps an idle model awake (heartbeat.h): under a hypervisor,
// memory that nobody has read for some seconds is slow once when it is read again, and nearly all of it are the
// encoder's weights.  Takes its turn, and gives way between the encoder's blocks.  Returns the milliseconds of one core
// that it worked: the time of its turns by `clock`, for each thread of the team.
double hear_silence(const transducer::Model& model, const WindowTools& tools, const Clock& clock = system_clock());

}  // namespace syrinx
