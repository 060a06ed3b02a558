#include "models/qwen_tts/codec_encoder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/row_conv.h"
#include "nn/rows.h"

namespace syrinx::qwen_tts {
namespace {

// The SEANet's rows of three frames stay in the cache, and are a job of some milliseconds.  The transformer's matrices
// are read once for four times as many: 24 rows are two blocks of the kernel.
constexpr size_t kPieceFrames = 3, kPassFrames = 12, kJobLayers = 4;
static_assert(kPassFrames % kPieceFrames == 0);
// Attention rounds a row that is alone in a pass otherwise than one of several.  The last position of a recording may
// be alone: then a copy of it goes through as well, for which there is room.
constexpr size_t kLeastRows = 2, kMostPositions = nn::kMaxPositions - kLeastRows + 1;

}  // namespace

CodecEncoder::CodecEncoder(std::shared_ptr<const CodecEncoderWeights> weights, nn::Runner& runner)
    : w_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      seanet_(w_->seanet, kPieceFrames * w_->config.frame_samples(), runner),
      transformer_(w_->transformer, runner, {.rows = kPassFrames * w_->config.downsample}),
      searches_(w_->acoustic.scratch_size(kPassFrames) * static_cast<size_t>(runner.team().size())) {
  const CodecEncoderConfig& c = w_->config;
  positions_.prepare((1 + kPassFrames) * c.downsample, c.width, kernels::Storage::kF32);
  latents_.prepare(kPassFrames, c.width, kernels::Storage::kF32);
  projected_.prepare(kPassFrames, 2 * c.row_width, kernels::Storage::kF32);
}

Result<CodecEncoderState> CodecEncoder::make_state(size_t samples) const {
  const nn::DecoderConfig& c = w_->transformer.shape;
  const size_t positions = std::max<size_t>(pieces_of(samples, w_->config.hop()), 1);
  if (positions > kMostPositions)
    return fail(Code::kLimitExceeded, "a recording of {} samples is too long for the codec, at most {} can be encoded",
                samples, kMostPositions * w_->config.hop());
  CodecEncoderState state;
  SYRINX_TRY(state.transformer, nn::KvCache::make({.layers = c.layers,
                                                   .key_heads = c.key_heads,
                                                   .head_size = c.head_size,
                                                   .capacity = positions + kLeastRows - 1}));
  state.seanet = seanet_.make_state();
  state.positions = Buffer<float>(w_->config.downsample * positions_.stride());
  return state;
}

void CodecEncoder::set_probe(mimi::Probe probe) {
  probe_ = std::move(probe);
  if (!probe_) return transformer_.set_probe({});
  transformer_.set_probe([this](size_t layer, View<const float, 2> rows) { probe_("transformer", layer, rows); });
}

void CodecEncoder::encode(CodecEncoderState& state, std::span<const float> samples, View<int32_t, 2> codes) {
  const CodecEncoderConfig& c = w_->config;
  const size_t length = c.frame_samples(), count = frames(samples.size());
  SYRINX_CHECK(codes.extent(0) == count && codes.extent(1) == codebooks() &&
                   pieces_of(samples.size(), c.hop()) <= state.transformer.room(),
               "{} samples into codes [{}, {}] and {} positions", samples.size(), codes.extent(0), codes.extent(1),
               state.transformer.room());
  SYRINX_CHECK(!state.ended || samples.empty(), "{} samples behind the end of a recording", samples.size());
  state.ended = state.ended || samples.size() % length != 0;
  for (size_t i = 0; i < count; i += kPassFrames) {
    const size_t frames = std::min(kPassFrames, count - i);
    const std::span<const float> part =
        samples.subspan(i * length, std::min(frames * length, samples.size() - i * length));
    const size_t positions = pieces_of(part.size(), c.hop());
    const bool begins = state.transformer.position == 0;
    const View<int32_t, 2> out{codes.row(i), {frames, codebooks()}, {codes.stride(0), 1}};
    const View<float, 2> x = transformer_.input(std::max(positions, kLeastRows));
    run_seanet(state, part, x);
    if (positions < kLeastRows) std::copy_n(x.row(0), x.stride(0), x.row(1));
    const nn::Decoder::Rows rows{.cache = &state.transformer, .count = x.extent(0)};
    transformer_.begin(w_->transformer, {&rows, 1}, nn::Decoder::Output::kRows);
    run_transformer();
    transformer_.end();
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      downsample(seat, state, begins, positions);
      seat.stage([&](const nn::Part& share) { quantise(share, out); });
    });
    runner_.between();
  }
}

void CodecEncoder::run_transformer() {
  const size_t layers = w_->transformer.layers.size(), at_once = runner_.cut() ? kJobLayers : layers;
  for (size_t layer = 0; layer < layers; layer += at_once) {
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      transformer_.work(seat, {layer, std::min(layer + at_once, layers)});
    });
    runner_.between();
  }
}

void CodecEncoder::run_seanet(CodecEncoderState& state, std::span<const float> samples, View<float, 2> positions) {
  const size_t piece = kPieceFrames * w_->config.frame_samples(), hop = w_->config.hop();
  for (size_t at = 0; at < samples.size(); at += piece) {
    const size_t here = std::min(piece, samples.size() - at);
    const View<const float, 2> in{samples.data() + at, {here, 1}};
    const View<float, 2> out{positions.row(at / hop), {pieces_of(here, hop), positions.stride(0)}};
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      seanet_.run(seat, state.seanet, in, out, "seanet", probe_);
    });
    runner_.between();
  }
}

// Before the positions of the pass stand those of the frame before: at the beginning copies of the first one.  A frame
// that lacks some at the end of the recording is filled up with copies of the last one.
void CodecEncoder::keep_positions(CodecEncoderState& state, bool first, size_t positions) {
  const size_t count = w_->config.downsample, width = positions_.stride(), filled = round_up(positions, count);
  const View<const float, 2> now = transformer_.output(positions);
  for (size_t j = 0; j < count; ++j)
    std::copy_n(first ? now.row(0) : state.positions.data() + j * width, width, positions_.f32(j));
  for (size_t j = 0; j < filled; ++j)
    std::copy_n(now.row(std::min(j, positions - 1)), width, positions_.f32(count + j));
  std::copy_n(positions_.f32(filled), count * width, state.positions.data());
}

void CodecEncoder::downsample(nn::Crew::Seat& seat, CodecEncoderState& state, bool first, size_t positions) {
  const size_t count = w_->config.downsample, width = positions_.stride(), frames = pieces_of(positions, count);
  seat.stage([&](const nn::Part& part) {
    if (part.rank == 0) keep_positions(state, first, positions);
  });
  const auto rows = [&](const PackedMatrix& matrix, kernels::RowConv work) {
    seat.stage([&](const nn::Part& part) {
      const auto own = kernels::share_row_conv(matrix, frames, part.rank, part.size);
      kernels::row_conv(matrix, work, own.rows, own.panels);
    });
  };
  rows(w_->downsample.view, {.input = positions_.f32(),
                             .rows = frames,
                             .row_step = count * width,
                             .tap_step = width,
                             .output = latents_.f32(),
                             .stride = latents_.stride()});
  if (probe_) {
    seat.stage([&](const nn::Part& part) {
      if (part.rank == 0) probe_("downsample", 0, {latents_.f32(), {frames, w_->config.width}, {latents_.stride(), 1}});
    });
  }
  rows(w_->projections.view, {.input = latents_.f32(),
                              .rows = frames,
                              .row_step = latents_.stride(),
                              .output = projected_.f32(),
                              .stride = projected_.stride()});
}

// The acoustic codebooks begin with their own projection, not with the rest that the semantic one leaves.
void CodecEncoder::quantise(const nn::Part& part, View<int32_t, 2> codes) {
  const size_t width = w_->config.row_width;
  const Range own = part.split(codes.extent(0));
  const size_t count = own.end - own.begin;
  if (count == 0) return;
  const size_t scratch_size = w_->acoustic.scratch_size(kPassFrames);
  const std::span<float> scratch =
      searches_.span().subspan(static_cast<size_t>(part.member) * scratch_size, scratch_size);
  const auto search = [&](const nn::Rvq& codebooks, size_t first, size_t column) {
    codebooks.encode(nn::columns_of(projected_, own.begin, count, column, width),
                     {codes.row(own.begin) + first, {count, codebooks.levels()}, {codes.stride(0), 1}}, scratch);
  };
  search(w_->semantic, 0, 0);
  search(w_->acoustic, 1, width);
}

}  // namespace syrinx::qwen_tts
