#include "models/transducer/greedy.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/argmax.h"
#include "models/transducer/boost_tree.h"

namespace syrinx::transducer {
namespace {

template <HeadKind kKind>
class LabelLooping final : public GreedyDecoder {
 public:
  LabelLooping(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, const GreedyOptions& options,
               size_t streams, size_t block_frames)
      : GreedyDecoder(std::move(weights), runner, options, streams, block_frames) {}

 private:
  bool decide(Lane& lane, std::span<float> logits) override {
    DecoderState::Head& head = lane.state->head();
    const size_t labels = weights_->config.vocabulary + 1;
    const int32_t label = choose(head, logits.first(labels));
    size_t ahead = 0;  // frames
    if constexpr (kKind == HeadKind::kTdt) {
      const kernels::Peak peak = kernels::argmax(logits.subspan(labels));
      if (!std::isfinite(peak.value)) head.faults |= kLogitsNotFinite;
      ahead = weights_->config.durations[peak.index];
    }
    return take(lane, label, ahead, kKind == HeadKind::kTdt ? static_cast<uint32_t>(ahead) : 1, logits.first(labels));
  }
};

}  // namespace

std::unique_ptr<GreedyDecoder> GreedyDecoder::make(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner,
                                                   const GreedyOptions& options, size_t streams, size_t block_frames) {
  SYRINX_CHECK(weights->has_transducer() && streams >= 1 && block_frames >= 1, "{} streams, {} frames", streams,
               block_frames);
  if (weights->config.kind == HeadKind::kTdt)
    return std::make_unique<LabelLooping<HeadKind::kTdt>>(std::move(weights), runner, options, streams, block_frames);
  return std::make_unique<LabelLooping<HeadKind::kRnnt>>(std::move(weights), runner, options, streams, block_frames);
}

GreedyDecoder::GreedyDecoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner,
                             const GreedyOptions& options, size_t streams, size_t block_frames)
    : weights_(std::move(weights)),
      options_(options),
      runner_(runner),
      crew_(runner.team()),
      prediction_(weights_, runner, streams),
      joint_(weights_, runner, streams * block_frames, streams),
      streams_(streams),
      block_frames_(block_frames),
      scratch_(weights_->config.vocabulary + 1) {
  lanes_.reserve(streams);
  seeking_.reserve(streams);
  deciding_.reserve(streams);
  found_.reserve(streams);
  stepping_.reserve(streams);
}

void GreedyDecoder::decode(std::span<const Job> jobs) {
  SYRINX_CHECK(jobs.size() <= streams_, "{} streams, made for {}", jobs.size(), streams_);
  size_t longest = 0;
  for (const Job& job : jobs) longest = std::max(longest, job.frames.extent(0));
  for (size_t first = 0; first < longest; first += block_frames_) {
    lanes_.clear();
    for (const Job& job : jobs) {
      if (first >= job.frames.extent(0)) continue;
      const size_t rows = std::min(block_frames_, job.frames.extent(0) - first);
      DecoderState::Head& head = job.state->head();
      lanes_.push_back({.state = job.state,
                        .frames = {job.frames.row(first), {rows, job.frames.extent(1)}, {job.frames.stride(0), 1}},
                        .first_row = lanes_.size() * block_frames_,
                        .begin = head.decoded,
                        .end = head.decoded + static_cast<int64_t>(rows),
                        .emissions = job.emissions});
      head.decoded += static_cast<int64_t>(rows);
    }
    run_round();
  }
}

void GreedyDecoder::begin_step() {
  stepping_.clear();
  for (Lane* const lane : found_) stepping_.push_back(lane->state);
  prediction_.begin(stepping_);
}

// Every member walks the same loops: what ends them is written by one of them between two barriers.
void GreedyDecoder::run_round() {
  const auto alone = [](nn::Crew::Seat& seat, const auto& body) {
    seat.stage([&](const nn::Part& part) {
      if (part.rank == 0) body();
    });
  };
  found_.clear();
  seeking_.clear();
  for (Lane& lane : lanes_) {
    if (!lane.state->head().started) found_.push_back(&lane);
    lane.state->head().started = true;
  }
  begin_step();
  const bool any_starts = !found_.empty();
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    seat.stage([&](const nn::Part& part) {
      for (const Lane& lane : lanes_) joint_.encode(part, lane.frames, lane.first_row);
    });
    if (any_starts) prediction_.work(seat);
    alone(seat, [&] {
      found_.clear();
      for (Lane& lane : lanes_) seek(&lane);
    });
    while (!seeking_.empty()) {
      seat.stage([&](const nn::Part& part) { joint_.multiply(part, seeking_.size()); });
      alone(seat, [&] { decide_all(); });
      if (!seeking_.empty() || stepping_.empty()) continue;
      prediction_.work(seat);
      alone(seat, [&] {
        for (Lane* const lane : found_) seek(lane);
        found_.clear();
      });
    }
  });
}

// Adds the lane to those that seek, if it has a frame left, and makes the row that the joint's output layer reads.
void GreedyDecoder::seek(Lane* lane) {
  const DecoderState& state = *lane->state;
  if (state.head().frame >= lane->end) return;
  const size_t row = static_cast<size_t>(state.head().frame - lane->begin);
  joint_.pair(seeking_.size(), joint_.encoded(lane->first_row + row), state.projection());
  seeking_.push_back(lane);
}

// Those that go on seeking move up, so that the next product has their rows alone.
void GreedyDecoder::decide_all() {
  const size_t rows = seeking_.size();
  deciding_.assign(seeking_.begin(), seeking_.end());
  seeking_.clear();
  for (size_t row = 0; row < rows; ++row) {
    Lane* const lane = deciding_[row];
    if (decide(*lane, joint_.logits(row))) {
      found_.push_back(lane);
    } else {
      seek(lane);
    }
  }
  if (seeking_.empty()) begin_step();
}

int32_t GreedyDecoder::choose(DecoderState::Head& head, std::span<float> logits) const {
  const size_t blank = weights_->config.vocabulary;
  logits[blank] -= options_.blank_penalty;
  const kernels::Peak peak = kernels::argmax(logits);
  if (!std::isfinite(peak.value)) {
    head.faults |= kLogitsNotFinite;
    return weights_->blank();
  }
  if (peak.index == blank || head.boost == nullptr) return static_cast<int32_t>(peak.index);
  return static_cast<int32_t>(head.boost->choose(head.boost_node, logits.first(blank), options_.boost_scale).index);
}

bool GreedyDecoder::take(Lane& lane, int32_t label, size_t ahead, uint32_t duration, std::span<const float> logits) {
  DecoderState::Head& head = lane.state->head();
  if (label == weights_->blank()) {
    head.frame += static_cast<int64_t>(std::max(ahead, size_t{1}));
    head.emissions = 0;
    return false;
  }
  emit(lane, label, duration, logits);
  head.emissions = ahead > 0 ? 0 : head.emissions + 1;
  if (head.emissions >= weights_->config.max_symbols) {
    ahead = 1;
    head.emissions = 0;
  }
  head.frame += static_cast<int64_t>(ahead);
  return true;
}

void GreedyDecoder::emit(Lane& lane, int32_t label, uint32_t duration, std::span<const float> logits) {
  DecoderState::Head& head = lane.state->head();
  head.label = label;
  if (head.boost != nullptr) head.boost_node = head.boost->next(head.boost_node, label);
  lane.emissions->push_back({.frame = head.frame,
                             .label = label,
                             .duration = duration,
                             .logit = logits[static_cast<size_t>(label)],
                             .confidence = confidence(options_.confidence, logits, scratch_)});
}

}  // namespace syrinx::transducer
