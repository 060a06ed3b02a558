// A SEANet, encoder or decoder, some frames at a time (spec pocket-tts.md, sections 4.1 to 4.3).
//
// Every convolution reads its input, activated where it was made, behind the last rows of the pass before, which the
// stream's state keeps.  ELU(0) = 0 makes the zeros before the first frame the same on either side of the activation.
// Each layer is a stage of a task (nn/crew.h).
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "models/mimi/weights.h"
#include "nn/crew.h"
#include "nn/runner.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::mimi {

// For tests: called after a stage with its number in the maker's code and its rows, which last for the call.
using Probe = std::function<void(std::string_view stage, size_t index, View<const float, 2> rows)>;

struct SeanetState {
  Buffer<float> histories;  // of each convolution in turn, [history, input_width]
};

// Scratch and the order of work; the weights must outlive it.  One pass at a time.
class Seanet {
 public:
  // `rows`: input rows of a pass at most.
  Seanet(const std::vector<SeanetLayer>& chain, size_t rows, nn::Runner& runner);

  SeanetState make_state() const { return {Buffer<float>(history_floats_)}; }
  static void reset(SeanetState& state);

  // Where the input of a pass is written before run(): [rows, input_width of the first layer].
  View<float, 2> input(size_t rows);
  // One member's walk: takes the input, written in an earlier stage, and writes the last layer's rows to `out`.  Rows
  // of `out` are padded to 32 floats, or samples side by side.  Allocates nothing.
  void run(nn::Crew::Seat& seat, SeanetState& state, size_t rows, View<float, 2> out, std::string_view stage,
           const Probe& probe);

 private:
  // Where a layer's results go: `output` as they are, `activated` for a next layer with ELU; either may be null.
  struct Target {
    float* output = nullptr;
    float* activated = nullptr;
  };
  float* plane(size_t layer) { return planes_[layer % 2].data() + guard_; }
  void convolve(const nn::Part& part, const Conv& conv, const float* in, size_t rows, const Target& to);
  void residual_block(const nn::Part& part, const SeanetLayer& layer, const float* in, size_t rows, const Target& to);

  const std::vector<SeanetLayer>& chain_;
  size_t rows_ = 0, guard_ = 0, history_floats_ = 0;
  Buffer<float> planes_[2];            // what even and odd layers read: guard_ floats for a history, then the rows
  Buffer<float> sums_;                 // rows before their activation, which a residual block adds to
  std::vector<Buffer<float>> hidden_;  // of each member, some rows inside a residual block
};

}  // namespace syrinx::mimi
