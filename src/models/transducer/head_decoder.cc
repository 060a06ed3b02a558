#include "models/transducer/head_decoder.h"

namespace syrinx::transducer {

HeadState::HeadState(const DecoderWeights& weights) {
  if (weights.has_transducer()) transducer.emplace(weights);
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
