// A SEANet, encoder or decoder, some frames at a time (spec pocket-tts.md, sections 4.1 to 4.3).
//
// Every convolution reads its input, activated where it was made and in the type that its weights ask for, behind the
// last rows of the pass before, which the stream's state keeps.  ELU(0) = 0 makes the zeros before the first frame the
// same on either side of the activation.
// Each layer is a stage of a task (nn/crew.h).
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "kernels/row_conv.h"
#include "models/mimi/seanet_weights.h"
#include "nn/crew.h"
#include "nn/runner.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::mimi {

// For tests: called after a stage with its number in the maker's code and its rows, which last for the call.
using Probe = std::function<void(std::string_view stage, size_t index, View<const float, 2> rows)>;

struct SeanetState {
  Buffer<std::byte> histories;  // of each convolution in turn, [history, input_width] in its input's type
};

// Scratch and the order of work; the weights must outlive it.  One pass at a time.
class Seanet {
 public:
  // `rows`: input rows of a pass at most.
  Seanet(const std::vector<SeanetLayer>& chain, size_t rows, nn::Runner& runner);

  SeanetState make_state() const { return {Buffer<std::byte>(history_bytes_)}; }
  static void reset(SeanetState& state);

  // One member's walk: takes rows written in an earlier stage, of the first layer's input_width at any stride, and
  // writes the last layer's rows to `out`.  Rows of `out` are padded to 32 floats, or samples side by side.  In the
  // last pass of a recording, zeros fill up each layer's rows to its stride, so that it makes ceil(rows / stride).
  // Allocates nothing.
  void run(nn::Crew::Seat& seat, SeanetState& state, View<const float, 2> in, View<float, 2> out,
           std::string_view stage, const Probe& probe);

 private:
  using Target = Conv::Target;
  bool in_pieces() const { return pieces_from_ > 0; }
  std::byte* plane(size_t layer) {
    return planes_[in_pieces() && layer == pieces_from_ ? 2 : layer % 2].data() + guard_;
  }
  bool rounds_input() const { return chain_.front().conv.input_type != kernels::RowType::kF32; }
  // The state that a pass reads and writes, and where its results go.
  struct Task {
    SeanetState& state;
    View<float, 2> out;
    std::string_view stage;
    const Probe& probe;
  };
  // `layers` on rows `taken` of what the first of them reads; what the last layer of all makes goes to
  // `task.out` from number `first` on.  Gives back how many rows were made.
  size_t run_layers(nn::Crew::Seat& seat, const Task& task, Range layers, Range taken, size_t first);
  void put_history(const SeanetState& state, size_t layer);
  void fill_stride(size_t layer, size_t rows);
  void residual_block(const nn::Part& part, const SeanetLayer& layer, const std::byte* in, size_t rows,
                      const Target& to);

  const std::vector<SeanetLayer>& chain_;
  size_t rows_ = 0, guard_ = 0, history_bytes_ = 0;
  // Layers from here on take so many rows at a time, through all of them; 0: every layer takes all rows.
  size_t pieces_from_ = 0, piece_rows_ = 0;
  std::vector<size_t> histories_at_;  // of each layer, in the state
  // Inputs of even and odd layers, and of layer pieces_from_: guard_ bytes for a history, then the rows.
  Buffer<std::byte> planes_[3];
  Buffer<float> sums_;                     // rows before their activation, which a residual block adds to
  std::vector<Buffer<std::byte>> hidden_;  // of each member, some rows inside a residual block
};

}  // namespace syrinx::mimi
