// The codec's transformer: pre-norm layers with rotary positions and a window, some positions at a time (spec
// pocket-tts.md, section 4.1, step 3).  A layer is some stages of a task (nn/crew.h).
#pragma once

#include <string_view>
#include <vector>

#include "kernels/row_conv.h"
#include "models/mimi/seanet.h"
#include "models/mimi/weights.h"
#include "nn/runner.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::mimi {

// Position p lies in row p mod R of each ring, R = window - 1 + step.  A head's rows lie together, as it reads nothing
// else.  The rings need no clearing: no row is read that was not written since position 0.
struct TransformerState {
  std::vector<Buffer<float>> keys, values;  // of each layer, [key heads, R, head size]
  size_t position = 0;                      // of the next row
};

// Rows that a matrix reads, in the type that it asks for; a row is padded to whole panels, the padding is zero.
class ReadyRows {
 public:
  void prepare(size_t rows, size_t channels, kernels::RowType type);
  kernels::RowType type() const { return type_; }
  size_t stride() const { return stride_; }
  std::byte* at(size_t row, size_t column) { return bytes_.data() + kernels::row_bytes(type_, row * stride_ + column); }

 private:
  Buffer<std::byte> bytes_;
  size_t stride_ = 0;
  kernels::RowType type_ = kernels::RowType::kF32;
};

// Scratch and the order of work; the weights must outlive it.  One step at a time.
class Transformer {
 public:
  // `step`: most rows of a run().
  Transformer(const TransformerWeights& weights, size_t step, nn::Runner& runner);

  TransformerState make_state() const;
  // One member's walk: x [T, width] in place, T <= step, rows of whole padded channels, written in an earlier stage.
  // Allocates nothing.
  void run(nn::Crew::Seat& seat, TransformerState& state, View<float, 2> x, std::string_view stage, const Probe& probe);

 private:
  size_t ring_rows() const { return w_.config.window - 1 + step_; }
  // fill(rows) writes f32 into these rows and columns of `to`, or beside it, and is then rounded.
  template <class Fill>
  void fill_ready(ReadyRows& to, Range rows, Range columns, const Fill& fill);
  void attention_block(nn::Crew::Seat& seat, size_t layer, TransformerState& state, View<float, 2> x);
  void feed_forward_block(nn::Crew::Seat& seat, const TransformerLayer& layer, View<float, 2> x);

  const TransformerWeights& w_;
  size_t step_;
  ReadyRows normed_, attended_, hidden_;
  nn::Plane unrounded_, qkv_, cosine_, sine_;
  std::vector<Buffer<float>> scratch_;  // of attention, for each member of the team
};

}  // namespace syrinx::mimi
