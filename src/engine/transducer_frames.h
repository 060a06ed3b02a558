// From the sound of a stream to the encoder's frames of a transducer, as soon as they are certain.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "models/transducer/encoder.h"
#include "models/transducer/model.h"
#include "models/transducer/stream_encoder.h"
#include "nn/runner.h"

namespace syrinx {

// One stream's; one thread.  What is given does not depend on how the sound was cut, unless it is flushed.
class FrameSource {
 public:
  // Frames [n, d] that follow those before; valid in the call.
  using Sink = std::function<void(View<const float, 2> frames)>;

  virtual ~FrameSource() = default;
  virtual void push(std::span<const float> samples, const Sink& sink) = 0;
  // All whole frames of what has been pushed, at once; those that would have waited for sound behind them have heard
  // less of it than they would have.  They do not come again; the sound goes on behind them.
  virtual void flush(const Sink& sink) = 0;
  // The end of the sound: all that is left.  Nothing may be pushed afterwards.
  virtual void finish(const Sink& sink) = 0;
};

// For models whose frames see the whole recording (spec transducer-asr.md, section 3.7): windows of 10 s that are
// known, 2 s to be decoded and 2 s that follow, encoded as recordings of their own; the first window has nothing before
// it.
class WindowedFrames final : public FrameSource {
 public:
  static constexpr double kLeftS = 10, kChunkS = 2, kRightS = 2;

  // The encoder and its runner are borrowed for the calls.
  WindowedFrames(std::shared_ptr<const transducer::Model> model, transducer::Encoder& encoder, nn::Runner& runner);

  void push(std::span<const float> samples, const Sink& sink) override;
  void flush(const Sink& sink) override;
  void finish(const Sink& sink) override;

 private:
  void decode(size_t chunk, const Sink& sink);

  std::shared_ptr<const transducer::Model> model_;
  transducer::Encoder& encoder_;
  nn::Runner& runner_;
  size_t frame_;                 // samples of one of the encoder's
  size_t left_, chunk_, right_;  // samples, whole frames
  std::vector<float> sound_;     // from the window's beginning on
  size_t known_ = 0;             // of them, decoded
  nn::Plane mels_;
};

// For cache-aware models: chunk by chunk, each frame computed once.  A push allocates nothing, a flush does.
class ChunkedFrames final : public FrameSource {
 public:
  // Whether a model can be streamed so: it must have been trained for it, and take features as they are.
  static bool fits(const transducer::Model& model);

  // fits() holds.  The encoder, made for the model's default context, is borrowed for the calls.
  ChunkedFrames(const transducer::Model& model, transducer::StreamEncoder& encoder);

  void push(std::span<const float> samples, const Sink& sink) override;
  void flush(const Sink& sink) override;
  void finish(const Sink& sink) override;

 private:
  size_t wanted() const { return state_.started() ? chunk_mels_ : first_mels_; }
  View<float, 2> room() { return {mels_.f32(filled_), {wanted() - filled_, mels_.channels()}, {mels_.stride(), 1}}; }
  void step(bool last, const Sink& sink);
  void give(transducer::EncoderState& state, bool last, size_t most, const Sink& sink);

  transducer::StreamEncoder& encoder_;
  transducer::FeatureStream features_;
  transducer::EncoderState state_;
  size_t first_mels_, chunk_mels_;
  nn::Plane mels_;  // of the chunk that is being filled
  size_t filled_ = 0;
  size_t flushed_ = 0;  // frames of that chunk that have been given
};

// The encoder's frames [n, d] of a whole sound; none for less than one frame of features.  Valid until the next call of
// the encoder.
View<const float, 2> encode_sound(const transducer::Model& model, std::span<const float> sound, nn::Plane& mels,
                                  transducer::Encoder& encoder, nn::Runner& runner);

}  // namespace syrinx
