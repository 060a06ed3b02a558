#include "models/mimi/decoder.h"

#include <algorithm>

#include "base/check.h"

namespace syrinx::mimi {

Decoder::Decoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner)
    : w_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      seanet_(w_->seanet, w_->config.resample_stride(), runner),
      transformer_(w_->transformer, w_->config.resample_stride(), runner),
      latent_(round_up(w_->config.latent, kPanelColumns)),
      quantised_(w_->quantizer.view.padded_columns()) {}

DecoderState Decoder::make_state() const {
  return {Buffer<float>(quantised_.size()), transformer_.make_state(), seanet_.make_state()};
}

void Decoder::reset(DecoderState& state) {
  std::fill(state.quantised.begin(), state.quantised.end(), 0.0f);
  state.transformer.position = 0;
  Seanet::reset(state.seanet);
}

void Decoder::decode(DecoderState& state, View<const float, 2> latents, std::span<float> samples) {
  const size_t frames = latents.extent(0), length = w_->config.frame_samples();
  SYRINX_CHECK(latents.extent(1) == w_->config.latent && samples.size() == frames * length,
               "latents [{}, {}] into {} samples", frames, latents.extent(1), samples.size());
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    for (size_t i = 0; i < frames; ++i)
      work_at_frame(seat, state, {latents.row(i), latents.extent(1)}, samples.subspan(i * length, length));
  });
}

// The latent's projection and its upsampling, a depthwise transposed convolution of two taps: columns of some panels.
void Decoder::upsample(const nn::Part& part, const DecoderState& state, View<float, 2> rows) {
  const PackedMatrix& quantizer = w_->quantizer.view;
  const Range panels = part.split(quantizer.panel_count());
  kernels::gemv(quantizer, latent_.data(), nullptr, quantised_.data(), panels, {});
  const size_t count = rows.extent(0), width = rows.extent(1);
  for (size_t j = 0; j < count; ++j) {
    const float* const now = w_->upsample.data() + j * width;
    const float* const before = w_->upsample.data() + (count + j) * width;
    float* const row = rows.row(j);
    for (size_t c = panels.begin * kPanelColumns; c < panels.end * kPanelColumns; ++c)
      row[c] = now[c] * quantised_[c] + before[c] * state.quantised[c];
  }
}

void Decoder::work_at_frame(nn::Crew::Seat& seat, DecoderState& state, std::span<const float> latent,
                            std::span<float> samples) {
  const View<float, 2> rows = seanet_.input(w_->config.resample_stride());
  const size_t count = rows.extent(0), width = rows.extent(1);
  seat.stage([&](const nn::Part& part) {
    if (part.rank == 0) std::copy(latent.begin(), latent.end(), latent_.begin());
  });
  seat.stage([&](const nn::Part& part) { upsample(part, state, rows); });
  seat.stage([&](const nn::Part& part) {
    if (part.rank != 0) return;
    std::copy(quantised_.begin(), quantised_.end(), state.quantised.begin());
    if (!probe_) return;
    probe_("quantizer", 0, {quantised_.data(), {1, width}});
    probe_("upsample", 0, rows);
  });
  transformer_.run(seat, state.transformer, {rows.data(), {count, w_->config.outer_width}, {width, 1}}, "transformer",
                   probe_);
  seanet_.run(seat, state.seanet, count, {samples.data(), {samples.size(), 1}}, "decoder", probe_);
}

}  // namespace syrinx::mimi
