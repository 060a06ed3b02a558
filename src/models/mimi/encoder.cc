#include "models/mimi/encoder.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/row_conv.h"
#include "models/mimi/ring.h"

namespace syrinx::mimi {

namespace {

// With three frames the rows of the slowest layers fill whole blocks of the kernel (48 = 4 x 12).
constexpr size_t kPassFrames = 3;
static_assert(kPassFrames <= kMaxPassFrames);

}  // namespace

Encoder::Encoder(std::shared_ptr<const EncoderWeights> weights, nn::Runner& runner)
    : w_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      seanet_(w_->seanet, kPassFrames * w_->config.frame_samples(), runner),
      transformer_(w_->transformer, runner,
                   {.rows = kPassFrames * w_->config.resample_stride(),
                    .positions = ring_rows(w_->transformer, kPassFrames * w_->config.resample_stride())}),
      samples_(kPassFrames * w_->config.frame_samples()) {
  positions_.prepare((1 + kPassFrames) * w_->config.resample_stride(), w_->config.encoder.width,
                     kernels::Storage::kF32);
  latents_.prepare(kPassFrames, w_->config.inner_width, kernels::Storage::kF32);
}

EncoderState Encoder::make_state() const {
  return {seanet_.make_state(), make_ring(w_->transformer, kPassFrames * w_->config.resample_stride()),
          Buffer<float>(w_->config.resample_stride() * positions_.stride())};
}

void Encoder::reset(EncoderState& state) {
  Seanet::reset(state.seanet);
  state.transformer.reset();
}

void Encoder::set_probe(Probe probe) {
  probe_ = std::move(probe);
  transformer_.set_probe(probe_into_stage(probe_, "transformer"));
}

void Encoder::encode(EncoderState& state, std::span<const float> samples, View<float, 2> latents) {
  const size_t count = frames(samples.size()), length = w_->config.frame_samples();
  SYRINX_CHECK(latents.extent(0) == count && latents.extent(1) == w_->config.inner_width,
               "{} samples into latents [{}, {}]", samples.size(), latents.extent(0), latents.extent(1));
  for (size_t i = 0; i < count; i += kPassFrames) {
    const size_t frames = std::min(kPassFrames, count - i), first = i * length;
    const size_t here = std::min(frames * length, samples.size() - first);
    std::copy_n(samples.data() + first, here, samples_.data());
    std::fill_n(samples_.data() + here, frames * length - here, 0.0f);
    const View<float, 2> out{latents.row(i), {frames, latents.extent(1)}, {latents.stride(0), 1}};
    const bool begins = state.transformer.position == 0;
    const nn::Decoder::Rows rows{.cache = &state.transformer, .count = frames * w_->config.resample_stride()};
    transformer_.begin(w_->transformer, {&rows, 1}, nn::Decoder::Output::kRows);
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      pass(seat, state, begins, out);
    });
    transformer_.end();
  }
}

// The positions of the frame before, in front of those of the pass.
void Encoder::keep_positions(EncoderState& state, bool first, size_t frames) {
  const size_t count = w_->config.resample_stride(), width = positions_.stride();
  float* const before = positions_.f32();
  const View<const float, 2> now = transformer_.output(frames * count);
  if (first) {  // before the recording its first position is repeated
    for (size_t j = 0; j < count; ++j) std::copy_n(now.data(), width, before + j * width);
  } else {
    std::copy_n(state.positions.data(), count * width, before);
  }
  std::copy_n(now.row((frames - 1) * count), count * width, state.positions.data());
}

void Encoder::pass(nn::Crew::Seat& seat, EncoderState& state, bool first, View<float, 2> latents) {
  const size_t frames = latents.extent(0), count = w_->config.resample_stride(), width = positions_.stride();
  const View<float, 2> x = transformer_.input(frames * count);
  seanet_.run(seat, state.seanet, {samples_.data(), {frames * w_->config.frame_samples(), 1}},
              {x.data(), {frames * count, width}}, "encoder", probe_);
  transformer_.work(seat);
  // The downsampling reads both frames in one run of rows.
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(frames * count);
    if (own.begin < own.end)
      std::copy_n(x.row(own.begin), (own.end - own.begin) * width, positions_.f32(count + own.begin));
    if (part.rank == 0) keep_positions(state, first, frames);
  });
  const PackedMatrix& downsample = w_->downsample.view;
  seat.stage([&](const nn::Part& part) {
    const auto own = kernels::share_row_conv(downsample, frames, part.rank, part.size);
    const kernels::RowConv work{.input = positions_.f32(),
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
