#include "models/mimi/seanet.h"

#include <algorithm>

#include "base/check.h"

namespace syrinx::mimi {

using kernels::Activation;

namespace {

kernels::ConvGeometry geometry(const Conv& conv, size_t rows) {
  return {.rows = rows / conv.stride, .dilation = conv.dilation, .stride = conv.stride};
}

void reserve(nn::Runner& runner, const Conv& conv, size_t rows) {
  const size_t bytes = kernels::conv_scratch_bytes(conv.matrix.view, geometry(conv, rows));
  for (int member = 0; member < runner.team().size(); ++member) runner.scratch(member, bytes);
}

}  // namespace

Seanet::Seanet(const std::vector<SeanetLayer>& chain, size_t rows, nn::Runner& runner)
    : chain_(chain), runner_(runner), rows_(rows) {
  size_t body = 0, hidden = 0;
  for (const SeanetLayer& layer : chain) {
    const Conv& conv = layer.conv;
    SYRINX_CHECK(rows % conv.stride == 0 && conv.history() <= rows, "{} rows, stride {}, history {}", rows, conv.stride,
                 conv.history());
    reserve(runner, conv, rows);
    guard_ = std::max(guard_, conv.history() * conv.input_width);
    history_floats_ += conv.history() * conv.input_width;
    body = std::max(body, rows * conv.input_width);
    if (layer.second) {
      reserve(runner, *layer.second, rows);
      hidden = std::max(hidden, rows * conv.width);
    } else {
      rows = rows / conv.stride * conv.up;
    }
  }
  current_ = Buffer<float>(guard_ + body);
  next_ = Buffer<float>(guard_ + body);
  hidden_ = Buffer<float>(hidden);
}

void Seanet::reset(SeanetState& state) { std::fill(state.histories.begin(), state.histories.end(), 0.0f); }

View<float, 2> Seanet::input() { return {current_.data() + guard_, {rows_, chain_.front().conv.input_width}}; }

// `in` points to the first row; its history lies before it.
void Seanet::convolve(const Conv& conv, const float* in, size_t rows, float* out, const float* residual) {
  runner_.conv(conv.matrix.view, geometry(conv, rows),
               {.data = in - conv.history() * conv.input_width,
                .rows = conv.history() + rows,
                .stride = conv.input_width,
                .activation = conv.elu ? Activation::kElu : Activation::kNone},
               {.data = out, .stride = conv.up * conv.width, .residual = residual, .residual_stride = conv.width});
}

void Seanet::run(SeanetState& state, View<float, 2> out, std::string_view stage, const Probe& probe) {
  SYRINX_CHECK(state.histories.size() == history_floats_, "a state of {} floats, needs {}", state.histories.size(),
               history_floats_);
  float* history = state.histories.data();
  size_t rows = rows_;
  for (const SeanetLayer& layer : chain_) {
    const Conv& conv = layer.conv;
    float* const body = current_.data() + guard_;
    const size_t kept = conv.history() * conv.input_width, size = rows * conv.input_width;
    std::copy_n(history, kept, body - kept);
    std::copy_n(body + size - kept, kept, history);
    history += kept;
    float* result = body;
    if (layer.second) {
      convolve(conv, body, rows, hidden_.data(), nullptr);
      convolve(*layer.second, hidden_.data(), rows, body, body);
    } else {
      const bool last = &layer == &chain_.back();
      result = last ? out.data() : next_.data() + guard_;
      convolve(conv, body, rows, result, nullptr);
      rows = rows / conv.stride * conv.up;
      std::swap(current_, next_);
    }
    const size_t width = layer.second ? layer.second->width : conv.width;
    if (probe) probe(stage, layer.module, {result, {rows, width}});
  }
}

}  // namespace syrinx::mimi
