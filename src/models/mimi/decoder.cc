#include "models/mimi/decoder.h"

#include <algorithm>

#include "base/check.h"
#include "models/mimi/ring.h"
#include "nn/rows.h"

namespace syrinx::mimi {

Decoder::Decoder(std::shared_ptr<const DecoderWeights> weights, nn::Runner& runner, size_t streams)
    : w_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      seanet_(w_->seanet, w_->config.resample_stride(), runner),
      transformer_(w_->transformer, runner,
                   {.rows = streams * w_->config.resample_stride(),
                    .streams = streams,
                    .positions = ring_rows(w_->transformer, w_->config.resample_stride())}) {
  frames_.reserve(streams);
  rows_.reserve(streams);
  latents_.prepare(streams, w_->config.latent, kernels::Storage::kF32);
  quantised_.prepare(streams, w_->config.outer_width, kernels::Storage::kF32);
}

DecoderState Decoder::make_state() const {
  return {Buffer<float>(quantised_.stride()), make_ring(w_->transformer, w_->config.resample_stride()),
          seanet_.make_state()};
}

void Decoder::reset(DecoderState& state) {
  std::fill(state.quantised.begin(), state.quantised.end(), 0.0f);
  state.transformer.reset();
  Seanet::reset(state.seanet);
}

void Decoder::set_probe(Probe probe) {
  probe_ = std::move(probe);
  transformer_.set_probe(probe_into_stage(probe_, "transformer"));
}

void Decoder::decode(DecoderState& state, View<const float, 2> latents, std::span<float> samples) {
  const size_t frames = latents.extent(0), length = w_->config.frame_samples();
  SYRINX_CHECK(latents.extent(1) == w_->config.latent && samples.size() == frames * length,
               "latents [{}, {}] into {} samples", frames, latents.extent(1), samples.size());
  for (size_t i = 0; i < frames; ++i) {
    const Frame frame{
        .state = &state, .latent = {latents.row(i), latents.extent(1)}, .samples = samples.subspan(i * length, length)};
    decode({&frame, 1});
  }
}

void Decoder::decode(std::span<const Frame> frames) {
  begin_frames(frames);
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    work_at_frames(seat);
  });
  end_frames();
}

void Decoder::begin_frames(std::span<const Frame> frames) {
  SYRINX_CHECK(frames.size() <= frames_.capacity(), "{} frames of {} streams", frames.size(), frames_.capacity());
  const size_t count = w_->config.resample_stride();
  frames_.assign(frames.begin(), frames.end());
  rows_.clear();
  for (size_t s = 0; s < frames.size(); ++s) {
    SYRINX_CHECK(frames[s].latent.size() == w_->config.latent && frames[s].samples.size() == w_->config.frame_samples(),
                 "{} numbers into {} samples", frames[s].latent.size(), frames[s].samples.size());
    std::copy(frames[s].latent.begin(), frames[s].latent.end(), latents_.f32(s));
    rows_.push_back({.cache = &frames[s].state->transformer, .first = s * count, .count = count});
  }
  transformer_.begin(w_->transformer, rows_, nn::Decoder::Output::kRows);
}

// The latents' projection and its upsampling, a depthwise transposed convolution of two taps: columns of some panels.
void Decoder::upsample(const nn::Part& part) {
  const PackedMatrix& quantizer = w_->quantizer.view;
  const Range panels = part.split(quantizer.panel_count());
  const size_t count = w_->config.resample_stride(), width = quantised_.stride();
  const View<float, 2> rows = transformer_.input(frames_.size() * count);
  for (size_t s = 0; s < frames_.size(); ++s) {
    float* const last = frames_[s].state->quantised.data();
    float* const latest = quantised_.f32(s);
    kernels::gemv(quantizer, latents_.f32(s), nullptr, latest, panels, {});
    const size_t first = panels.begin * kPanelColumns, end = panels.end * kPanelColumns;
    for (size_t j = 0; j < count; ++j) {
      const float* const now = w_->upsample.data() + j * width;
      const float* const before = w_->upsample.data() + (count + j) * width;
      float* const row = rows.row(s * count + j);
      for (size_t c = first; c < end; ++c) row[c] = now[c] * latest[c] + before[c] * last[c];
    }
    std::copy(latest + first, latest + end, last + first);
  }
}

void Decoder::work_at_frames(nn::Crew::Seat& seat) {
  const size_t count = w_->config.resample_stride();
  const View<float, 2> x = transformer_.input(frames_.size() * count);
  seat.stage([&](const nn::Part& part) { upsample(part); });
  if (probe_) {
    seat.stage([&](const nn::Part& part) {
      if (part.rank != 0) return;
      probe_("quantizer", 0, nn::rows_of(quantised_, frames_.size()));
      probe_("upsample", 0, x);
    });
  }
  transformer_.work(seat);
  for (size_t s = 0; s < frames_.size(); ++s) {
    const Frame& frame = frames_[s];
    seanet_.run(seat, frame.state->seanet, {x.row(s * count), {count, x.extent(1)}, {x.stride(0), 1}},
                {frame.samples.data(), {frame.samples.size(), 1}}, "decoder", probe_);
  }
}

}  // namespace syrinx::mimi
