#include "models/transducer/prediction.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/lstm_cell.h"
#include "nn/linear.h"

namespace syrinx::transducer {
namespace {

View<float, 2> rows_of(nn::Plane& plane, size_t rows) {
  return {plane.f32(), {rows, plane.channels()}, {plane.stride(), 1}};
}

}  // namespace

Prediction::Prediction(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, size_t streams)
    : weights_(std::move(weights)), runner_(runner), crew_(runner.team()), hidden_(weights_->layers.size()) {
  const DecoderConfig& config = weights_->config;
  states_.reserve(streams);
  input_.prepare(streams, config.width, kernels::Storage::kF32);
  gates_.prepare(streams, 4 * config.width, kernels::Storage::kF32);
  projected_.prepare(streams, config.joint, kernels::Storage::kF32);
  for (nn::Plane& hidden : hidden_) hidden.prepare(streams, config.width, kernels::Storage::kF32);
  for (const LstmLayer& layer : weights_->layers) {
    for (const auto* matrix : {&layer.input, &layer.recurrent})
      if (matrix->view.columns > 0) nn::reserve_linear(runner, matrix->view, streams);
  }
  nn::reserve_linear(runner, weights_->joint_prediction.view, streams);
}

void Prediction::step(std::span<DecoderState* const> states) {
  begin(states);
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    work(seat);
  });
}

// The start symbol is the blank's row, which published checkpoints hold at zero.
void Prediction::begin(std::span<DecoderState* const> states) {
  SYRINX_CHECK(states.size() <= input_.rows(), "{} streams, made for {}", states.size(), input_.rows());
  states_.assign(states.begin(), states.end());
  nn::Plane& first = weights_->gates_by_label ? gates_ : input_;
  for (size_t n = 0; n < states.size(); ++n) {
    DecoderState& state = *states[n];
    const int32_t label = state.head().label < 0 ? weights_->blank() : state.head().label;
    const std::span<const float> row = weights_->labels.row(static_cast<size_t>(label));
    std::copy(row.begin(), row.end(), first.f32(n));
    for (size_t layer = 0; layer < hidden_.size(); ++layer)
      std::copy_n(state.hidden(layer).data(), weights_->config.width, hidden_[layer].f32(n));
  }
}

void Prediction::work(nn::Crew::Seat& seat) {
  for (size_t layer = 0; layer < hidden_.size(); ++layer) {
    seat.stage([&](const nn::Part& part) { gates(part, layer); });
    seat.stage([&](const nn::Part& part) { cells(part, layer); });
  }
  seat.stage([&](const nn::Part& part) {
    const size_t rows = states_.size();
    const nn::Share own = nn::stream_linear_part(runner_, part, weights_->joint_prediction.view,
                                                 rows_of(hidden_.back(), rows), {}, rows_of(projected_, rows));
    const size_t end = std::min(own.columns.end, weights_->config.joint);
    for (size_t n = own.rows.begin; n < own.rows.end; ++n)
      std::copy(projected_.f32(n) + own.columns.begin, projected_.f32(n) + end,
                states_[n]->projection().data() + own.columns.begin);
  });
}

// A member adds to the columns that it wrote itself, so no barrier lies between the two products.
void Prediction::gates(const nn::Part& part, size_t layer) {
  const LstmLayer& w = weights_->layers[layer];
  const size_t rows = states_.size();
  const View<float, 2> z = rows_of(gates_, rows);
  if (layer > 0 || !weights_->gates_by_label) {
    nn::Plane& x = layer == 0 ? input_ : hidden_[layer - 1];
    nn::stream_linear_part(runner_, part, w.input.view, rows_of(x, rows), {}, z);
  }
  nn::stream_linear_part(runner_, part, w.recurrent.view, rows_of(hidden_[layer], rows), z, z);
}

void Prediction::cells(const nn::Part& part, size_t layer) {
  const size_t width = weights_->config.width;
  const Range own = part.split(states_.size());
  for (size_t n = own.begin; n < own.end; ++n) {
    DecoderState& state = *states_[n];
    kernels::lstm_cell({gates_.f32(n), 4 * width}, state.cell(layer), state.hidden(layer));
    std::copy_n(state.hidden(layer).data(), width, hidden_[layer].f32(n));
  }
}

}  // namespace syrinx::transducer
