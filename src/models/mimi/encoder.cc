#include "models/mimi/encoder.h"

#include <algorithm>

#include "base/check.h"

namespace syrinx::mimi {

Encoder::Encoder(std::shared_ptr<const EncoderWeights> weights, nn::Runner& runner)
    : w_(std::move(weights)),
      runner_(runner),
      seanet_(w_->seanet, w_->config.frame_samples(), runner),
      transformer_(w_->transformer, w_->config.resample_stride(), runner),
      latent_(w_->downsample.view.padded_columns()) {
  positions_.prepare(2 * w_->config.resample_stride(), w_->config.encoder.width, kernels::Storage::kF32);
  const size_t bytes = kernels::conv_scratch_bytes(w_->downsample.view, {.rows = 1});
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, bytes);
}

EncoderState Encoder::make_state() const {
  return {seanet_.make_state(), transformer_.make_state(),
          Buffer<float>(w_->config.resample_stride() * positions_.stride())};
}

void Encoder::reset(EncoderState& state) {
  Seanet::reset(state.seanet);
  state.transformer.position = 0;
}

void Encoder::encode(EncoderState& state, std::span<const float> samples, View<float, 2> latents) {
  const size_t count = frames(samples.size()), length = w_->config.frame_samples();
  SYRINX_CHECK(latents.extent(0) == count && latents.extent(1) == w_->config.inner_width,
               "{} samples into latents [{}, {}]", samples.size(), latents.extent(0), latents.extent(1));
  for (size_t i = 0; i < count; ++i) {
    const size_t first = i * length;
    frame(state, samples.subspan(first, std::min(length, samples.size() - first)), {latents.row(i), latents.extent(1)});
  }
}

void Encoder::frame(EncoderState& state, std::span<const float> samples, std::span<float> latent) {
  const View<float, 2> in = seanet_.input();
  std::fill_n(in.data(), in.size(), 0.0f);
  for (size_t i = 0; i < samples.size(); ++i) in.row(i)[0] = samples[i];
  const size_t count = w_->config.resample_stride(), width = positions_.stride();
  float* const before = positions_.f32();
  float* const now = positions_.f32(count);
  const bool first = state.transformer.position == 0;
  seanet_.run(state.seanet, {now, {count, width}}, "encoder", probe_);
  transformer_.run(state.transformer, {now, {count, w_->config.encoder.width}, {width, 1}}, "transformer", probe_);
  if (first) {  // before the recording its first position is repeated
    for (size_t j = 0; j < count; ++j) std::copy_n(now, width, before + j * width);
  } else {
    std::copy_n(state.positions.data(), count * width, before);
  }
  std::copy_n(now, count * width, state.positions.data());
  runner_.conv(w_->downsample.view, {.rows = 1, .stride = count}, {.data = before, .rows = 2 * count, .stride = width},
               {.data = latent_.data(), .stride = latent_.size()});
  std::copy_n(latent_.data(), latent.size(), latent.data());
  if (probe_) probe_("latents", 0, {latent_.data(), {1, latent.size()}});
}

}  // namespace syrinx::mimi
