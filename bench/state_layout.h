// State of a stream's decoder, in one block as the program has it or scattered over the heap, and a decoder that reads
// either, to measure the fourth principle of the hot path (spec transducer-asr.md, section 5.6 (4)).
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "kernels/argmax.h"
#include "kernels/lstm_cell.h"
#include "models/transducer/greedy.h"
#include "nn/linear.h"

namespace syrinx::bench {

// The program's own: numbers, b, h and c in one aligned block.
class BlockState {
 public:
  explicit BlockState(const transducer::DecoderWeights& weights) : state_(weights) {}
  int64_t& decoded() { return state_.head().decoded; }
  int64_t& frame() { return state_.head().frame; }
  int32_t& label() { return state_.head().label; }
  uint32_t& emissions() { return state_.head().emissions; }
  uint32_t& faults() { return state_.head().faults; }
  bool& started() { return state_.head().started; }
  std::span<float> projection() { return state_.projection(); }
  std::span<float> hidden(size_t layer) { return state_.hidden(layer); }
  std::span<float> cell(size_t layer) { return state_.cell(layer); }

 private:
  transducer::DecoderState state_;
};

// Each number and each row an allocation of its own, with others between them.
class ScatteredState {
 public:
  ScatteredState(const transducer::DecoderWeights& weights, std::mt19937& random)
      : decoded_(apart<int64_t>(random)),
        frame_(apart<int64_t>(random)),
        emissions_(apart<uint32_t>(random)),
        faults_(apart<uint32_t>(random)),
        label_(apart<int32_t>(random)),
        started_(apart<bool>(random)),
        projection_(row(weights.config.joint, random)) {
    *label_ = -1;
    for (size_t layer = 0; layer < weights.layers.size(); ++layer) {
      hidden_.push_back(row(weights.config.width, random));
      cell_.push_back(row(weights.config.width, random));
    }
  }
  int64_t& decoded() { return *decoded_; }
  int64_t& frame() { return *frame_; }
  int32_t& label() { return *label_; }
  uint32_t& emissions() { return *emissions_; }
  uint32_t& faults() { return *faults_; }
  bool& started() { return *started_; }
  std::span<float> projection() { return *projection_; }
  std::span<float> hidden(size_t layer) { return *hidden_[layer]; }
  std::span<float> cell(size_t layer) { return *cell_[layer]; }

 private:
  using Row = std::unique_ptr<std::vector<float>>;

  void allocate_between(std::mt19937& random) {
    std::uniform_int_distribution<size_t> bytes(64, 16384);
    between_.push_back(std::make_unique<std::vector<char>>(bytes(random)));
  }
  template <class T>
  std::unique_ptr<T> apart(std::mt19937& random) {
    allocate_between(random);
    return std::make_unique<T>();
  }
  Row row(size_t values, std::mt19937& random) {
    allocate_between(random);
    return std::make_unique<std::vector<float>>(values);
  }

  std::vector<std::unique_ptr<std::vector<char>>> between_;
  std::unique_ptr<int64_t> decoded_, frame_;
  std::unique_ptr<uint32_t> emissions_, faults_;
  std::unique_ptr<int32_t> label_;
  std::unique_ptr<bool> started_;
  Row projection_;
  std::vector<Row> hidden_, cell_;
};

// Each frame of a stream says its likeliest label and then a blank, so that all of a state is read and written whatever
// the weights are.  One team; one call at a time.
template <class State>
class LayoutDecoder {
 public:
  LayoutDecoder(std::shared_ptr<const transducer::DecoderWeights> weights, nn::Runner& runner, size_t block)
      : weights_(std::move(weights)),
        runner_(runner),
        crew_(runner.team()),
        joint_(weights_, runner, block, 1),
        hidden_(weights_->layers.size()) {
    const transducer::DecoderConfig& config = weights_->config;
    input_.prepare(1, config.width, kernels::Storage::kF32);
    gates_.prepare(1, 4 * config.width, kernels::Storage::kF32);
    projected_.prepare(1, config.joint, kernels::Storage::kF32);
    for (nn::Plane& hidden : hidden_) hidden.prepare(1, config.width, kernels::Storage::kF32);
    for (const transducer::LstmLayer& layer : weights_->layers)
      for (const auto* matrix : {&layer.input, &layer.recurrent})
        if (matrix->view.columns > 0) nn::reserve_linear(runner, matrix->view, 1);
    nn::reserve_linear(runner, weights_->joint_prediction.view, 1);
  }

  void decode(State& state, View<const float, 2> frames, std::vector<int32_t>& labels) {
    everyone([&](const nn::Part& part) { joint_.encode(part, frames, 0); });
    if (!state.started()) predict(state);
    state.started() = true;
    for (size_t row = 0; row < frames.extent(0); ++row) {
      joint_.pair(0, joint_.encoded(row), state.projection());
      everyone([&](const nn::Part& part) { joint_.multiply(part, 1); });
      const kernels::Peak peak = kernels::argmax(joint_.logits(0).first(weights_->config.vocabulary));
      if (!std::isfinite(peak.value)) state.faults() |= transducer::kLogitsNotFinite;
      state.label() = static_cast<int32_t>(peak.index);
      labels.push_back(state.label());
      ++state.emissions();
      predict(state);
      ++state.frame();
      state.emissions() = 0;
    }
    state.decoded() += static_cast<int64_t>(frames.extent(0));
  }

 private:
  static View<float, 2> row_of(nn::Plane& plane) { return {plane.f32(), {1, plane.channels()}, {plane.stride(), 1}}; }

  template <class Body>
  void everyone(const Body& body) {
    runner_.team().run(
        [&](int member) { body(nn::Part{.member = member, .rank = member, .size = runner_.team().size()}); });
  }

  // As Prediction::begin() and work(), for one stream.
  void predict(State& state) {
    const size_t width = weights_->config.width;
    const int32_t label = state.label() < 0 ? weights_->blank() : state.label();
    const std::span<const float> entry = weights_->labels.row(static_cast<size_t>(label));
    std::copy(entry.begin(), entry.end(), (weights_->gates_by_label ? gates_ : input_).f32());
    for (size_t layer = 0; layer < hidden_.size(); ++layer)
      std::copy_n(state.hidden(layer).data(), width, hidden_[layer].f32());
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      for (size_t layer = 0; layer < hidden_.size(); ++layer) {
        seat.stage([&](const nn::Part& part) { gates(part, layer); });
        seat.stage([&](const nn::Part& part) {
          if (part.rank != 0) return;
          kernels::lstm_cell({gates_.f32(), 4 * width}, state.cell(layer), state.hidden(layer));
          std::copy_n(state.hidden(layer).data(), width, hidden_[layer].f32());
        });
      }
      seat.stage([&](const nn::Part& part) {
        const nn::Share own = nn::stream_linear_part(runner_, part, weights_->joint_prediction.view,
                                                     row_of(hidden_.back()), {}, row_of(projected_));
        const size_t end = std::min(own.columns.end, weights_->config.joint);
        if (own.rows.begin == own.rows.end) return;
        std::copy(projected_.f32() + own.columns.begin, projected_.f32() + end,
                  state.projection().data() + own.columns.begin);
      });
    });
  }
  void gates(const nn::Part& part, size_t layer) {
    const transducer::LstmLayer& w = weights_->layers[layer];
    const View<float, 2> z = row_of(gates_);
    if (layer > 0 || !weights_->gates_by_label) {
      nn::Plane& x = layer == 0 ? input_ : hidden_[layer - 1];
      nn::stream_linear_part(runner_, part, w.input.view, row_of(x), {}, z);
    }
    nn::stream_linear_part(runner_, part, w.recurrent.view, row_of(hidden_[layer]), z, z);
  }

  const std::shared_ptr<const transducer::DecoderWeights> weights_;
  nn::Runner& runner_;
  nn::Crew crew_;
  transducer::Joint joint_;
  nn::Plane input_, gates_, projected_;
  std::vector<nn::Plane> hidden_;
};

}  // namespace syrinx::bench
