#include "models/transducer/head_decoder.h"

#include <bit>
#include <cstdint>

namespace syrinx::transducer {
namespace {

// Whether no value is infinite or not a number: narrow products round those to numbers, and nobody would see them.
bool all_finite(View<const float, 2> rows) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t bad = 0;
  for (size_t t = 0; t < rows.extent(0); ++t) {
    const float* const row = rows.row(t);
    for (size_t i = 0; i < rows.extent(1); ++i)
      bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(row[i]) & kExponent) == kExponent);
  }
  return bad == 0;
}

}  // namespace

HeadState::HeadState(const DecoderWeights& weights) {
  if (weights.has_transducer()) transducer.emplace(weights);
}

// Only the first: bits carry no order, and what comes later follows from it.
void HeadState::raise(uint32_t faults) {
  uint32_t& own = transducer ? transducer->head().faults : ctc.faults;
  if (own == 0) own = faults;
}

void HeadState::reset() {
  if (transducer) transducer->reset();
  ctc = {};
}

HeadDecoder::HeadDecoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner,
                         const GreedyOptions& options, size_t streams, size_t block_frames) {
  jobs_.reserve(streams);
  if (weights->has_transducer()) {
    greedy_ = GreedyDecoder::make(std::move(weights), runner, options, streams, block_frames);
  } else {
    ctc_ = std::make_unique<CtcDecoder>(std::move(weights), runner, options.confidence, block_frames);
  }
}

void HeadDecoder::decode(std::span<const Job> jobs) {
  for (const Job& job : jobs)
    if (!all_finite(job.frames)) job.state->raise(kFramesNotFinite);
  if (ctc_ != nullptr) {
    for (const Job& job : jobs) ctc_->decode(job.frames, job.state->ctc, *job.emissions);
    return;
  }
  jobs_.clear();
  for (const Job& job : jobs) jobs_.push_back({&*job.state->transducer, job.frames, job.emissions});
  greedy_->decode(jobs_);
}

void HeadDecoder::set_boost_scale(float scale) {
  if (greedy_ != nullptr) greedy_->set_boost_scale(scale);
}

}  // namespace syrinx::transducer
