// The decoder of the 12 Hz codec: a frame of codes becomes 80 ms of sound, without lookahead (spec qwen3-tts.md,
// sections 5.1 and 5.2).  The maker decodes whole utterances 300 frames at a time; this carries the state on, and gives
// what the maker's decoder gives for the whole at once.
//
// Weights (codec_weights.h) are shared, the state belongs to a stream, and a CodecDecoder is the scratch and the order
// of work, for the streams of one thread.  All memory is planned when they are made; decode() allocates nothing.
// Samples depend neither on how many frames go through in a pass, nor on threads or on other streams.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "models/qwen_tts/codec_weights.h"
#include "nn/crew.h"
#include "nn/decoder.h"
#include "nn/kv_cache.h"
#include "nn/runner.h"

namespace syrinx::qwen_tts {

struct CodecDecoderState {
  nn::KvCache transformer;      // a ring
  Buffer<std::byte> histories;  // of each convolution in turn, as its input is stored
  bool not_finite = false;      // a sample was so, since the stream began
  // Between calls: a sample was not finite, and is 0.
  bool faulty() const { return not_finite; }
};

// For tests: called after a stage with its number in the maker's code and its rows, which last for the call.
using CodecProbe = std::function<void(std::string_view stage, size_t index, View<const float, 2> rows)>;

class CodecDecoder {
 public:
  // The runner must outlive it and is used during calls only.  Up to `streams` streams are decoded together, up to
  // `frames` frames of each in one pass, kMaxCodecPassFrames at most: several cost less each, and come later.
  CodecDecoder(std::shared_ptr<const CodecDecoderWeights> weights, nn::Runner& runner, size_t streams = 1,
               size_t frames = 1);

  // The state of a stream that begins; for decoders of as many frames a pass.
  CodecDecoderState make_state() const;
  static void reset(CodecDecoderState& state);

  // kInvalidArgument: the first code that is not below codebook_size.
  Status check_codes(std::span<const int32_t> codes) const;

  // codes [F, codebooks] -> samples [F * frame_samples] in [-1, 1], any F.  Codes have passed check_codes(); those
  // below 0 are 0, as with the maker.  Weights that are finite may still make samples that are not: see faulty().
  void decode(CodecDecoderState& state, View<const int32_t, 2> codes, std::span<float> samples);

  struct Frames {
    CodecDecoderState* state = nullptr;
    View<const int32_t, 2> codes;  // [n, codebooks], n up to the constructor's `frames`
    std::span<float> samples;      // [n * frame_samples]
  };
  // Frames of each of some different streams: what is large of the weights is read once for all of them.
  void decode(std::span<const Frames> streams);
  // The same in three parts, as a task of crew() that one member may begin and others join (nn/crew.h): the middle one
  // is called by each with its seat, the others between jobs of the team.
  nn::Crew& crew() { return crew_; }
  void begin_frames(std::span<const Frames> streams);
  void work_at_frames(nn::Crew::Seat& seat);
  void end_frames() { transformer_.end(); }

  const CodecDecoderConfig& config() const { return w_->config; }
  // Stages "quantizer", "pre_conv", "layer", "pre_transformer", "upsample" and "decoder".
  void set_probe(CodecProbe probe);

 private:
  using Before = CodecLayer::Before;
  using Target = nn::CausalConv::Target;
  struct Stream {
    Frames work;
    size_t first = 0, count = 0;  // its frames in the pass
  };
  // Inputs of even and odd layers, guard_ bytes for a history before the rows; and rows that are added later.
  struct Planes {
    Buffer<std::byte> rows[2];
    Buffer<float> kept;
  };
  // Some layers for some streams.  Of one stream they may begin with some of the rows that it has.
  struct Task {
    std::span<const Stream> streams;
    Range layers;
    size_t first = 0, rows = 0;  // of the first layer; rows == 0: all
  };

  size_t rows_of(const Task& task, const Stream& stream, size_t layer) const;
  Planes& planes(const Stream& stream, size_t layer);
  std::byte* plane(const Stream& stream, size_t layer) { return planes(stream, layer).rows[layer % 2].data() + guard_; }
  float* next_rows(const Stream& stream);
  void prepare_planes(Planes& planes, Range layers, size_t first_rows, size_t rate) const;
  void choose_groups();
  Range own_rows(const Range& own, const Stream& stream, size_t rate) const;
  void quantise(const nn::Part& part);
  void norm_transformed(const nn::Part& part, size_t layer);
  void norm_next(const nn::Part& part, size_t layer);
  void place(const nn::CausalConv& conv, View<const float, 2> rows, std::byte* to) const;
  void put_history(const Stream& stream, size_t layer);
  void save_history(const Stream& stream, size_t layer, const std::byte* end);
  Target target(const Stream& stream, size_t layer);
  void run_layer(nn::Crew::Seat& seat, const Task& task, size_t layer);
  void run_task(nn::Crew::Seat& seat, const Task& task);
  void run_stream(nn::Crew::Seat& seat, const Stream& stream);
  void convolve(const nn::Part& part, const Task& task, size_t layer);
  void tell(nn::Crew::Seat& seat, const Task& task, size_t layer);

  std::shared_ptr<const CodecDecoderWeights> w_;
  nn::Runner& runner_;
  nn::Crew crew_;
  size_t frames_;  // of a stream in a pass at most
  nn::Decoder transformer_;
  std::vector<Stream> streams_;          // of the pass
  std::vector<nn::Decoder::Rows> rows_;  // those of each
  std::vector<int32_t> codes_;           // [frames of the pass, codebooks]
  size_t total_ = 0;                     // frames of the pass
  // Layers before apart_ take all streams at once, those behind one stream at a time; from pieces_from_ on they take
  // piece_rows_ rows at a time through all of them, so that rows stay in a cache.
  size_t apart_ = 0, pieces_from_ = 0, piece_rows_ = 0;
  size_t guard_ = 0, history_bytes_ = 0;
  size_t scratch_bytes_ = 0;          // of a member, for rows of int16
  std::vector<size_t> histories_at_;  // of each layer, in the state
  std::vector<Planes> early_;         // of each stream
  Planes middle_, late_;
  std::vector<Buffer<float>> next_rows_;  // of each stream, what a ConvNeXt block reads behind its history
  nn::Plane normed_;
  std::vector<std::vector<nn::CausalConv::Piece>> pieces_;  // of each member
  CodecProbe probe_;
};

}  // namespace syrinx::qwen_tts
