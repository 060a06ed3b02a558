// From frames of features to frames of the encoder: strided convolutions that halve time and mels, then a matrix (spec
// transducer-asr.md, section 3.1).  Works through the sound piece by piece: each stage keeps the two or three rows that
// its next output still reads, so a stream gives the rows that the whole recording gives.
//
// One thread at a time, on the runner's team.
#pragma once

#include <span>
#include <vector>

#include "models/transducer/encoder_weights.h"
#include "nn/runner.h"
#include "tensor/buffer.h"

namespace syrinx::transducer {

// Rows that a stream's stages have read and not yet used up.
class SubsamplingState {
 public:
  // For pieces of at most `mels` frames of features.
  SubsamplingState(const EncoderConfig& config, size_t mels);
  void reset();
  // The other must be of the same configuration and size.
  void copy_from(const SubsamplingState& other);
  size_t size_bytes() const;

 private:
  friend class Subsampler;
  struct Stage {
    Buffer<float> rows;  // [capacity, width]
    size_t width = 0, capacity = 0;
    size_t count = 0;     // rows held
    size_t first = 0;     // the number of the first of them since the beginning
    size_t produced = 0;  // rows that the stage has given
  };
  std::vector<Stage> stages_;
};

class Subsampler {
 public:
  // A piece of one stream: its next frames of features [T, mels]; with `last`, the stream ends behind them.
  struct Piece {
    SubsamplingState* state = nullptr;
    View<const float, 2> mels;
    bool last = false;
  };

  // `pieces` at once, of `mels` frames each, at most.  With `streams`, each frame gets the numbers that it gets alone,
  // to the last bit.
  Subsampler(const EncoderWeights& weights, nn::Runner& runner, size_t pieces, size_t mels, bool streams);

  // The frames that have become known, those of the first piece first, into the first rows of `out`, which must have
  // room; `rows[n]` is how many piece n gave.  Allocates nothing.
  size_t run(std::span<const Piece> pieces, std::span<size_t> rows, View<float, 2> out);

 private:
  size_t feed(size_t stage, SubsamplingState::Stage& state, bool last, size_t at);
  void convolve(size_t stage, const SubsamplingState::Stage& state, size_t rows, size_t at);
  void gather(const SubsamplingState::Stage& state, ptrdiff_t row, size_t input_columns, size_t columns,
              float* to) const;
  size_t ready(const SubsamplingState::Stage& state, bool last) const;
  void multiply(const PackedMatrix& matrix, View<const float, 2> x, size_t frame_rows, View<float, 2> y);

  const EncoderWeights& w_;
  nn::Runner& runner_;
  const bool streams_;
  std::vector<size_t> columns_;  // mels, then of each stage's output
  nn::Plane convolved_;          // [rows * columns, C], or [.., 9 P] for full convolutions
  nn::Plane mixed_;              // [rows * columns, C]: behind a stage's matrix
  std::vector<size_t> counts_;   // rows of each piece in the stage at hand
};

}  // namespace syrinx::transducer
