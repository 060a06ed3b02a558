#include "models/transducer/ctc.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/argmax.h"
#include "nn/linear.h"

namespace syrinx::transducer {

CtcDecoder::CtcDecoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner,
                       const ConfidenceConfig& confidence, size_t block_frames)
    : weights_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      confidence_(confidence),
      scratch_(weights_->config.vocabulary + 1) {
  SYRINX_CHECK(weights_->config.ctc && block_frames >= 1, "{} frames at once", block_frames);
  logits_.prepare(block_frames, weights_->ctc.view.columns, kernels::Storage::kF32);
  nn::reserve_linear(runner, weights_->ctc.view, block_frames);
}

void CtcDecoder::decode(View<const float, 2> frames, CtcState& state, std::vector<Emission>& emissions) {
  for (size_t first = 0; first < frames.extent(0); first += logits_.rows()) {
    const size_t rows = std::min(logits_.rows(), frames.extent(0) - first);
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      seat.stage([&](const nn::Part& part) {
        nn::stream_linear_part(runner_, part, weights_->ctc.view,
                               {frames.row(first), {rows, frames.extent(1)}, {frames.stride(0), 1}}, {},
                               {logits_.f32(), {rows, logits_.channels()}, {logits_.stride(), 1}});
      });
    });
    for (size_t row = 0; row < rows; ++row) read(row, state, emissions);
  }
}

void CtcDecoder::read(size_t row, CtcState& state, std::vector<Emission>& emissions) {
  const std::span<const float> logits(logits_.f32(row), logits_.channels());
  const kernels::Peak peak = kernels::argmax(logits);
  const int64_t frame = state.decoded++;
  const bool finite = std::isfinite(peak.value);
  state.faults |= finite ? 0u : static_cast<uint32_t>(kLogitsNotFinite);
  const auto label = static_cast<int32_t>(peak.index);
  if (!finite || label == weights_->blank()) {
    state.last = -1;
    return;
  }
  const float sure = confidence(confidence_, logits, scratch_);
  if (label != state.last) {
    emissions.push_back({.frame = frame, .label = label, .duration = 1, .logit = peak.value, .confidence = sure});
  } else if (!emissions.empty() && emissions.back().frame + emissions.back().duration == frame) {
    ++emissions.back().duration;
    emissions.back().confidence = std::min(emissions.back().confidence, sure);
  }
  state.last = label;
}

}  // namespace syrinx::transducer
