// The vocoder, iSTFTNet: source and features to 24 kHz (specification 5).  All layers run over the whole piece, because
// instance norm sees all of it; within a layer the work is tiled by time for the cache.
#pragma once

#include <span>

#include "models/kokoro/layers.h"
#include "models/kokoro/source.h"
#include "models/kokoro/weights.h"
#include "nn/runner.h"

namespace syrinx::kokoro {

class Generator {
 public:
  Generator(const Weights& weights, nn::Runner& runner)
      : w_(weights),
        runner_(runner),
        third_(round_up(weights.config.generator, kPanelColumns), 1.0f / 3.0f),
        zero_(third_.size(), 0.0f) {}

  // f0 [2F] (a plane, column 0) -> the spectrum of the source, [120F + 1, 22].
  void source(const nn::Plane& f0, const SourceNoise& noise);
  // The two upsampling stages; `features` [2F, 512].  goes_on() is asked before each block: false where it said no, and
  // nothing has come of it.
  template <class GoesOn>
  bool run(const nn::Plane& features, StyleNorm& style, const GoesOn& goes_on) {
    for (size_t i = 0; i < 2; ++i) {
      begin_stage(i, i == 0 ? features : sum_, style);
      for (size_t block = 0; block < 3; ++block) {
        if (!goes_on()) return false;
        add_block(i, block, style);
      }
    }
    spectrum(sum_);
    return true;
  }
  void release();  // gives the scratch back
  // samples [600F]
  void inverse(std::span<float> samples);

  // [120F + 1, 22]: 11 magnitudes and 11 angles of the source; after run(), 11 log magnitudes and 11 phases (before
  // their sine) of the sound, in the same memory.
  nn::Plane& spectrum_plane() { return spectrum_; }

 private:
  // Part of a plane: the rows that hold the signal, between guard rows that the transposed convolution may spill into.
  struct Rows {
    void* data = nullptr;
    size_t count = 0;
    size_t stride = 0;
  };
  Rows body(nn::Plane& plane, size_t rows, size_t channels) const;
  size_t channels_of(size_t stage) const { return w_.config.generator >> (stage + 1); }
  void begin_stage(size_t index, const nn::Plane& features, StyleNorm& style);
  void add_block(size_t stage, size_t block, StyleNorm& style);
  void upsample(size_t index, const nn::Plane& features, size_t rows);
  void reflect_first_row(size_t width);
  // x stays as it is unless work is x.  The block's result goes to `out`, on top of what is there when `add`.
  void snake_block(const SnakeBlock& block, StyleNorm& style, const Rows& x, const nn::PlaneStats& x_stats,
                   const Rows& work, const Rows& out, bool add);
  void spectrum(const nn::Plane& features);
  kernels::Storage storage() const {
    return w_.precision == Precision::kInt8 ? kernels::Storage::kF16 : kernels::Storage::kF32;
  }

  const Weights& w_;
  nn::Runner& runner_;
  Source source_;
  std::vector<float> signal_, third_, zero_, row_;
  // x: the input of the three blocks; work: one block's residual stream; hidden: between its convolutions; sum of
  // blocks.
  nn::Plane spectrum_, x_, work_, hidden_, sum_;
  nn::PlaneStats feature_stats_, x_stats_, work_stats_, hidden_stats_;
};

}  // namespace syrinx::kokoro
