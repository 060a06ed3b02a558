#include "models/mimi/encoder.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/row_conv.h"

namespace syrinx::mimi {

namespace {

// With three frames the rows of the slowest layers fill whole blocks of the kernel (48 = 4 x 12).
constexpr size_t kPassFrames = 3;

}  // namespace

Encoder::Encoder(std::shared_ptr<const EncoderWeights> weights, nn::Runner& runner)
    : w_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      seanet_(w_->seanet, kPassFrames * w_->config.frame_samples(), runner),
      transformer_(w_->transformer, kPassFrames * w_->config.resample_stride(), runner) {
  positions_.prepare((1 + kPassFrames) * w_->config.resample_stride(), w_->config.encoder.width,
                     kernels::Storage::kF32);
  latents_.prepare(kPassFrames, w_->config.inner_width, kernels::Storage::kF32);
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
  for (size_t i = 0; i < count; i += kPassFrames) {
    const size_t frames = std::min(kPassFrames, count - i), first = i * length;
    const View<float, 2> in = seanet_.input(frames * length);
    const size_t here = std::min(frames * length, samples.size() - first);
    std::copy_n(samples.data() + first, here, in.data());
    std::fill_n(in.data() + here, in.size() - here, 0.0f);
    const View<float, 2> out{latents.row(i), {frames, latents.extent(1)}, {latents.stride(0), 1}};
    const bool begins = state.transformer.position == 0;
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      pass(seat, state, begins, out);
    });
  }
}

void Encoder::pass(nn::Crew::Seat& seat, EncoderState& state, bool first, View<float, 2> latents) {
  const size_t frames = latents.extent(0), count = w_->config.resample_stride(), width = positions_.stride();
  float* const before = positions_.f32();
  float* const now = positions_.f32(count);
  seanet_.run(seat, state.seanet, frames * w_->config.frame_samples(), {now, {frames * count, width}}, "encoder",
              probe_);
  transformer_.run(seat, state.transformer, {now, {frames * count, w_->config.encoder.width}, {width, 1}},
                   "transformer", probe_);
  seat.stage([&](const nn::Part& part) {
    if (part.rank != 0) return;
    if (first) {  // before the recording its first position is repeated
      for (size_t j = 0; j < count; ++j) std::copy_n(now, width, before + j * width);
    } else {
      std::copy_n(state.positions.data(), count * width, before);
    }
    std::copy_n(now + (frames - 1) * count * width, count * width, state.positions.data());
  });
  const PackedMatrix& downsample = w_->downsample.view;
  seat.stage([&](const nn::Part& part) {
    const auto own = kernels::share_row_conv(downsample, frames, part.rank, part.size);
    const kernels::RowConv work{.input = before,
                                .rows = frames,
                                .row_step = count * width,
                                .tap_step = width,
                                .output = latents_.f32(),
                                .stride = latents_.stride()};
    kernels::row_conv(downsample, work, own.rows, own.panels);
  });
  seat.stage([&](const nn::Part& part) {
    if (part.rank != 0) return;
    for (size_t i = 0; i < frames; ++i) std::copy_n(latents_.f32(i), latents.extent(1), latents.row(i));
    if (probe_) probe_("latents", 0, latents);
  });
}

}  // namespace syrinx::mimi
