#include "models/pocket_tts/chunk_speaker.h"

#include <algorithm>

#include "base/check.h"

namespace syrinx::pocket {

ChunkSpeaker::ChunkSpeaker(const std::shared_ptr<const FlowLmWeights>& flow,
                           std::shared_ptr<const mimi::DecoderWeights> codec, FlowSchedule schedule, nn::Runner& runner)
    : weights_(flow),
      flow_(flow, runner),
      head_(flow, std::move(schedule), runner),
      decoder_(std::move(codec), runner),
      codec_(decoder_.make_state()),
      latent_(weights_->latent),
      denormalised_(weights_->latent) {
  SYRINX_CHECK(decoder_.config().latent == latent_.size(), "codec {} model {}", decoder_.config().latent,
               latent_.size());
}

Status ChunkSpeaker::begin(const FlowLmState& voice, std::span<const int32_t> ids, float eos_threshold,
                           size_t frames_after) {
  end_ = SpeechEnd(eos_threshold, 0, 0);
  const size_t needed = needed_positions(voice.position, ids.size());
  if (state_.capacity < needed) {
    SYRINX_TRY(state_, FlowLmState::make(*weights_, needed));
  }
  SYRINX_TRY_VOID(state_.copy_from(voice));
  SYRINX_TRY_VOID(flow_.prefill_text(ids, state_));
  mimi::Decoder::reset(codec_);
  risen_ = 0;
  end_ = SpeechEnd(eos_threshold, frames_after, max_steps(ids.size()));
  return {};
}

bool ChunkSpeaker::next(std::span<const float> noise, std::span<float> samples) {
  SYRINX_CHECK(noise.size() == latent_.size() && samples.size() == frame_samples(), "{} {}", noise.size(),
               samples.size());
  if (!end_.goes_on()) return false;
  const bool first = end_.steps() == 0;
  const FlowLm::Step step = flow_.step(first ? nullptr : latent_.data(), state_);
  // The frame after the last is not spoken, so it need not be drawn.
  if (!end_.speaks(step.eos_logit)) return false;
  head_.sample(step.hidden, noise, latent_);
  for (size_t i = 0; i < latent_.size(); ++i)
    denormalised_[i] = latent_[i] * weights_->latent_std[i] + weights_->latent_mean[i];
  decoder_.decode(codec_, {denormalised_.data(), {1, denormalised_.size()}}, samples);
  for (float& sample : samples) {
    if (risen_ == kFadeInSamples) break;
    sample *= static_cast<float>(risen_++) / (kFadeInSamples - 1);
  }
  return true;
}

}  // namespace syrinx::pocket
