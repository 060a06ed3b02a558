// The speaker encoder: a recording becomes one vector that tells its voice (spec qwen3-tts.md, section 5.4; the maker's
// Qwen3TTSSpeakerEncoder).  It sees the recording as a whole, once; the vector is used as it is, not normed.
//
// Weights are shared; an encoder belongs to one thread and runs on the team of its runner, layer by layer: between its
// jobs others may have the team (nn/runner.h).  The vector does not depend on threads.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "models/qwen_tts/speaker_weights.h"
#include "nn/runner.h"

namespace syrinx::qwen_tts {

class SpeakerEncoder {
 public:
  // The runner must outlive it and is used during calls only.
  SpeakerEncoder(std::shared_ptr<const SpeakerWeights> weights, nn::Runner& runner)
      : w_(std::move(weights)), runner_(runner) {}

  // Memory grows with the recording: 2 minutes, twice what a reference may have.
  static constexpr size_t kMaxSamples = 120 * SpeakerFeatures::kSampleRate;

  size_t width() const { return w_->config.width; }
  // Fewer samples have no mirror image at some layer.
  size_t least_samples() const;

  // Samples at 24 kHz, mono -> x_vector [width].  Memory: for a minute and the published sizes about 75 MB, given back
  // at the end.  kInvalidArgument: fewer than least_samples().  kLimitExceeded: more than kMaxSamples.  kDataLoss:
  // weights that make no finite vector.
  Status embed(std::span<const float> samples, std::span<float> x_vector);

  // Tests: stages "mel", "block" 0 to blocks, "mfa" and "asp", rows in time order.
  using Probe = std::function<void(std::string_view stage, size_t index, View<const float, 2> rows)>;
  void set_probe(Probe probe) { probe_ = std::move(probe); }

 private:
  std::shared_ptr<const SpeakerWeights> w_;
  nn::Runner& runner_;
  Probe probe_;
};

}  // namespace syrinx::qwen_tts
