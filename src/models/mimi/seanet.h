// A SEANet, encoder or decoder, one frame at a time (spec pocket-tts.md, sections 4.1 to 4.3).
//
// Every convolution sees its input behind the last rows of the frame before, which the stream's state keeps: raw, since
// ELU(0) = 0 makes the zeros before the first frame the same on either side of the activation.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "models/mimi/weights.h"
#include "nn/runner.h"
#include "tensor/buffer.h"
#include "tensor/view.h"

namespace syrinx::mimi {

// For tests: called after a stage with its number in the maker's code and its rows, which last for the call.
using Probe = std::function<void(std::string_view stage, size_t index, View<const float, 2> rows)>;

struct SeanetState {
  Buffer<float> histories;  // of each convolution in turn, [history, input_width]
};

// Scratch and the order of work; the weights must outlive it.  One frame at a time, from one thread.
class Seanet {
 public:
  // `rows`: input rows of a frame, all that run() ever takes.
  Seanet(const std::vector<SeanetLayer>& chain, size_t rows, nn::Runner& runner);

  SeanetState make_state() const { return {Buffer<float>(history_floats_)}; }
  static void reset(SeanetState& state);

  // Where the caller writes the frame's input, whole rows of padded channels: [rows, input_width of the first layer].
  View<float, 2> input();
  // Takes the input and writes the last layer's rows, padded to 32 floats each, to `out`.  Allocates nothing.
  void run(SeanetState& state, View<float, 2> out, std::string_view stage, const Probe& probe);

 private:
  void convolve(const Conv& conv, const float* in, size_t rows, float* out, const float* residual);

  const std::vector<SeanetLayer>& chain_;
  nn::Runner& runner_;
  size_t rows_ = 0, guard_ = 0, history_floats_ = 0;
  Buffer<float> current_, next_, hidden_;  // the first two: guard_ floats for a history, then the rows
};

}  // namespace syrinx::mimi
