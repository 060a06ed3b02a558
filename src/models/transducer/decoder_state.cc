#include "models/transducer/decoder_state.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "models/transducer/decoder_weights.h"

namespace syrinx::transducer {

DecoderState::DecoderState(const DecoderWeights& weights)
    : joint_(weights.config.joint),
      width_(weights.config.width),
      joint_bytes_(round_up(joint_ * sizeof(float), 64)),
      row_bytes_(round_up(width_ * sizeof(float), 64)),
      block_(sizeof(Head) + joint_bytes_ + 2 * weights.layers.size() * row_bytes_) {
  reset();
}

void DecoderState::reset() {
  std::fill(block_.begin(), block_.end(), std::byte{0});
  new (block_.data()) Head;
}

void DecoderState::forget_labels() {
  const Head before = head();
  reset();
  Head& now = head();
  now.decoded = before.decoded;
  now.frame = before.frame;
  now.emissions = before.emissions;
  now.boost = before.boost;
  now.faults = before.faults;
}

void DecoderState::copy_from(const DecoderState& other) {
  SYRINX_CHECK(other.block_.size() == block_.size(), "a state of {} bytes, not {}", other.block_.size(), block_.size());
  std::copy(other.block_.begin(), other.block_.end(), block_.begin());
}

}  // namespace syrinx::transducer
