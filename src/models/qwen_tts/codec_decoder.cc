#include "models/qwen_tts/codec_decoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/depthwise_rows.h"
#include "kernels/layer_norm.h"
#include "kernels/rms_norm.h"
#include "nn/rows.h"

namespace syrinx::qwen_tts {

using kernels::RowType;

namespace {

// Samples as they are heard; whether one was not finite, which is silence.
bool bound_samples(std::span<float> samples) {
  bool fault = false;
  for (float& sample : samples) {
    const bool finite = std::isfinite(sample);
    fault = fault || !finite;
    sample = finite ? std::clamp(sample, -1.0f, 1.0f) : 0.0f;
  }
  return fault;
}

// Floats that a member makes at a time behind the last upsampling: with what it reads and adds to, they fit the
// second-level cache.
constexpr size_t kPieceFloats = 49152;
constexpr size_t kPieceGrain = 12;   // rows of the kernel's blocks
constexpr size_t kSlackBytes = 128;  // behind the rows
constexpr size_t kNextHistory = ConvNextWeights::kTaps - 1;

const char* name_of(CodecStage stage) {
  switch (stage) {
    case CodecStage::kNone: break;
    case CodecStage::kQuantizer: return "quantizer";
    case CodecStage::kPreConv: return "pre_conv";
    case CodecStage::kPreTransformer: return "pre_transformer";
    case CodecStage::kUpsample: return "upsample";
    case CodecStage::kDecoder: return "decoder";
  }
  return "";
}

size_t ring_rows(const CodecDecoderWeights& weights, size_t frames) {
  return weights.transformer.shape.window - 1 + frames;
}

}  // namespace

CodecDecoder::CodecDecoder(std::shared_ptr<const CodecDecoderWeights> weights, nn::Runner& runner, size_t streams,
                           size_t frames)
    : w_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      frames_(frames),
      transformer_(w_->transformer, runner,
                   {.rows = streams * frames, .streams = streams, .positions = ring_rows(*w_, frames)}),
      early_(streams) {
  SYRINX_CHECK(streams > 0 && frames > 0 && frames <= kMaxCodecPassFrames, "{} streams of {} frames", streams, frames);
  const std::vector<CodecLayer>& chain = w_->chain;
  const size_t latent = round_up(w_->config.latent, kPanelColumns);
  size_t next_rate = 1;
  for (const CodecLayer& layer : chain) {
    histories_at_.push_back(history_bytes_);
    guard_ = std::max(guard_, round_up(layer.conv.kept_bytes(), 64));
    const bool next = layer.before == Before::kConvNext;
    if (next) next_rate = std::max(next_rate, layer.rate);
    history_bytes_ += next ? kNextHistory * latent * sizeof(float) : round_up(layer.conv.kept_bytes(), 4);
  }
  choose_groups();
  const size_t apart = chain[apart_].rate, last = chain[pieces_from_].rate;
  for (Planes& planes : early_) prepare_planes(planes, {0, apart_ + 1}, frames, 1);
  prepare_planes(middle_, {apart_, pieces_from_ + 1}, frames * apart, apart);
  prepare_planes(late_, {pieces_from_, chain.size()}, std::min(piece_rows_, frames * last), last);
  for (size_t s = 0; s < streams; ++s) next_rows_.emplace_back((kNextHistory + frames * next_rate) * latent);
  normed_.prepare(streams * frames * next_rate, std::max(w_->config.latent, w_->transformer.shape.width),
                  kernels::Storage::kF32);
  for (size_t i = 0; i < chain.size(); ++i) {
    const size_t rows = frames * chain[i].rate, most = piece_rows_ * chain[i].rate / last;
    scratch_bytes_ = std::max(
        scratch_bytes_, i < apart_ ? chain[i].conv.scratch_bytes(streams * rows, streams)
                                   : chain[i].conv.scratch_bytes(i < pieces_from_ ? rows : std::min(rows, most), 1));
  }
  for (int member = 0; member < runner.team().size(); ++member) runner.scratch(member, scratch_bytes_);
  streams_.reserve(streams);
  rows_.reserve(streams);
  codes_.resize(streams * frames * w_->config.codebooks);
  pieces_.resize(static_cast<size_t>(runner.team().size()));
  for (auto& pieces : pieces_) pieces.reserve(streams);
}

// Matrices up to the second block are large and meet few rows, those behind the last upsampling are small and meet
// many.
void CodecDecoder::choose_groups() {
  size_t blocks = 0;
  for (size_t i = 0; i < w_->chain.size(); ++i) {
    const CodecLayer& layer = w_->chain[i];
    if (!layer.begins_block) continue;
    if (++blocks <= 2) apart_ = i;
    pieces_from_ = i;
    const size_t made = layer.conv.up * layer.conv.width, members = static_cast<size_t>(runner_.team().size());
    piece_rows_ = std::max<size_t>(kPieceFloats * members / made / kPieceGrain, 1) * kPieceGrain;
  }
  SYRINX_CHECK(piece_rows_ > 0, "a decoder of {} layers without a block", w_->chain.size());
}

// For layers that begin with `first_rows` rows at `rate` rows a frame: what all of them but the first read, and what
// all of them but the last make.
void CodecDecoder::prepare_planes(Planes& planes, Range layers, size_t first_rows, size_t rate) const {
  size_t bytes = 0, kept = 0;
  for (size_t i = layers.begin; i < layers.end; ++i) {
    const CodecLayer& layer = w_->chain[i];
    const size_t rows = first_rows * layer.rate / rate;
    if (i > layers.begin || i == 0) bytes = std::max(bytes, layer.conv.input_bytes(rows));
    if (i + 1 < layers.end) kept = std::max(kept, rows * layer.conv.up * layer.conv.width);
  }
  for (Buffer<std::byte>& plane : planes.rows) plane = Buffer<std::byte>(guard_ + bytes + kSlackBytes);
  planes.kept = Buffer<float>(kept);
}

// Not larger than nn::kMaxCacheBytes, as check() of the configuration sees to it.
CodecDecoderState CodecDecoder::make_state() const {
  const nn::DecoderConfig& c = w_->transformer.shape;
  return {*nn::KvCache::make({.layers = c.layers,
                              .key_heads = c.key_heads,
                              .head_size = c.head_size,
                              .capacity = ring_rows(*w_, frames_),
                              .window = c.window}),
          Buffer<std::byte>(history_bytes_)};
}

void CodecDecoder::reset(CodecDecoderState& state) {
  state.transformer.reset();
  state.not_finite = false;
  std::fill(state.histories.begin(), state.histories.end(), std::byte{0});  // zeros in either type
}

Status CodecDecoder::check_codes(std::span<const int32_t> codes) const {
  for (const int32_t code : codes)
    if (code >= 0 && static_cast<size_t>(code) >= w_->config.codebook_size)
      return fail(Code::kInvalidArgument, "code {} is not below the {} of the codec's codebooks", code,
                  w_->config.codebook_size);
  return {};
}

void CodecDecoder::set_probe(CodecProbe probe) {
  probe_ = std::move(probe);
  transformer_.set_probe(probe_ ? [this](size_t layer, View<const float, 2> rows) { probe_("layer", layer, rows); }
                                : nn::Decoder::Probe());
}

void CodecDecoder::decode(CodecDecoderState& state, View<const int32_t, 2> codes, std::span<float> samples) {
  const size_t count = codes.extent(0), length = w_->config.frame_samples();
  SYRINX_CHECK(samples.size() == count * length, "{} frames into {} samples", count, samples.size());
  for (size_t i = 0; i < count; i += frames_) {
    const size_t n = std::min(frames_, count - i);
    const Frames frames{.state = &state,
                        .codes = {codes.row(i), {n, codes.extent(1)}, {codes.stride(0), 1}},
                        .samples = samples.subspan(i * length, n * length)};
    decode({&frames, 1});
  }
}

void CodecDecoder::decode(std::span<const Frames> streams) {
  begin_frames(streams);
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    work_at_frames(seat);
  });
  end_frames();
}

void CodecDecoder::begin_frames(std::span<const Frames> streams) {
  SYRINX_CHECK(streams.size() <= early_.size(), "{} streams, room for {}", streams.size(), early_.size());
  const size_t books = w_->config.codebooks;
  streams_.clear();
  rows_.clear();
  total_ = 0;
  for (const Frames& work : streams) {
    const size_t count = work.codes.extent(0);
    SYRINX_CHECK(count <= frames_ && work.samples.size() == count * w_->config.frame_samples() &&
                     (count == 0 || work.codes.extent(1) == books) && work.state->histories.size() == history_bytes_,
                 "{} frames of {} codes, room for {}, into {} samples; a state of {} bytes, needs {}", count,
                 work.codes.extent(1), frames_, work.samples.size(), work.state->histories.size(), history_bytes_);
    if (count == 0) continue;
    for (size_t n = 0; n < count; ++n)
      std::transform(work.codes.row(n), work.codes.row(n) + books, codes_.begin() + (total_ + n) * books,
                     [](int32_t code) { return std::max(code, 0); });
    streams_.push_back({.work = work, .first = total_, .count = count});
    rows_.push_back({.cache = &work.state->transformer, .first = total_, .count = count});
    total_ += count;
  }
  transformer_.begin(w_->transformer, rows_, nn::Decoder::Output::kRows);
}

size_t CodecDecoder::rows_of(const Task& task, const Stream& stream, size_t layer) const {
  const size_t rate = w_->chain[layer].rate;
  return task.rows == 0 ? stream.count * rate : task.rows * rate / w_->chain[task.layers.begin].rate;
}

CodecDecoder::Planes& CodecDecoder::planes(const Stream& stream, size_t layer) {
  if (layer <= apart_) return early_[static_cast<size_t>(&stream - streams_.data())];
  return layer <= pieces_from_ ? middle_ : late_;
}

float* CodecDecoder::next_rows(const Stream& stream) {
  const size_t latent = round_up(w_->config.latent, kPanelColumns);
  return next_rows_[static_cast<size_t>(&stream - streams_.data())].data() + kNextHistory * latent;
}

// The stream's rows among those of the pass that are a member's own, all at `rate` rows a frame.
Range CodecDecoder::own_rows(const Range& own, const Stream& stream, size_t rate) const {
  const size_t first = stream.first * rate, end = first + stream.count * rate;
  return {std::clamp(own.begin, first, end) - first, std::clamp(own.end, first, end) - first};
}

// Rows as a layer reads them; what it reads behind their columns is zero.
void CodecDecoder::place(const nn::CausalConv& conv, View<const float, 2> rows, std::byte* to) const {
  const size_t width = rows.extent(1), depth = round_up(width, kDepthGroup);
  if (conv.input_type == RowType::kBf16) {
    auto* const words = reinterpret_cast<uint16_t*>(to);
    kernels::round_rows(rows, words, conv.input_width);
    for (size_t n = 0; n < rows.extent(0); ++n)
      std::fill(words + n * conv.input_width + width, words + n * conv.input_width + depth, uint16_t{0});
    return;
  }
  auto* const floats = reinterpret_cast<float*>(to);
  for (size_t n = 0; n < rows.extent(0); ++n) {
    std::copy_n(rows.row(n), width, floats + n * conv.input_width);
    std::fill(floats + n * conv.input_width + width, floats + n * conv.input_width + depth, 0.0f);
  }
}

// The semantic row of a frame's codes, and the sum of the acoustic ones.
void CodecDecoder::quantise(const nn::Part& part) {
  const nn::CausalConv& conv = w_->chain[0].conv;
  const size_t width = w_->config.row_width(), books = w_->config.codebooks;
  const Range own = part.split(total_);
  for (const Stream& stream : streams_) {
    const Range rows = own_rows(own, stream, 1);
    for (size_t n = rows.begin; n < rows.end; ++n) {
      const std::span<const int32_t> codes(codes_.data() + (stream.first + n) * books, books);
      auto* const row = reinterpret_cast<float*>(plane(stream, 0) + conv.input_bytes(n));
      w_->first.decode(codes.first(1), {row, width});
      w_->rest.decode(codes.subspan(1), {row + width, width});
      std::fill(row + 2 * width, row + conv.input_width, 0.0f);
    }
  }
}

void CodecDecoder::norm_transformed(const nn::Part& part, size_t layer) {
  const nn::CausalConv& conv = w_->chain[layer].conv;
  const View<const float, 2> x = transformer_.output(total_);
  const size_t width = x.extent(1);
  const Range own = part.split(total_);
  for (const Stream& stream : streams_) {
    const Range rows = own_rows(own, stream, 1);
    if (rows.begin == rows.end) continue;
    const size_t first = stream.first + rows.begin, count = rows.end - rows.begin;
    const View<float, 2> normed(normed_.f32(first), {count, width}, {normed_.stride(), 1});
    kernels::rms_norm({x.row(first), {count, width}, {x.stride(0), 1}}, w_->norm.gamma.data(),
                      w_->transformer.shape.epsilon, normed);
    place(conv, normed, plane(stream, layer) + conv.input_bytes(rows.begin));
  }
}

void CodecDecoder::norm_next(const nn::Part& part, size_t layer) {
  const CodecLayer& reader = w_->chain[layer];
  const ConvNextWeights& next = w_->upsampling[w_->chain[layer + 1].stage_index];
  const size_t width = w_->config.latent, stride = round_up(width, kPanelColumns);
  const kernels::DepthwiseRows depthwise{
      .weight = next.depthwise.data(), .bias = next.bias.data(), .taps = ConvNextWeights::kTaps};
  const Range own = part.split(total_ * reader.rate);
  for (const Stream& stream : streams_) {
    const Range rows = own_rows(own, stream, reader.rate);
    const size_t all = stream.count * reader.rate;
    if (part.rank == 0)
      save_history(stream, layer, reinterpret_cast<const std::byte*>(next_rows(stream) + all * stride));
    if (rows.begin == rows.end) continue;
    const View<const float, 2> x(next_rows(stream) - kNextHistory * stride, {kNextHistory + all, width}, {stride, 1});
    const View<float, 2> made(normed_.f32(stream.first * reader.rate), {all, width}, {normed_.stride(), 1});
    kernels::depthwise_rows(depthwise, x, rows.begin, rows.end, made);
    const View<float, 2> normed(made.row(rows.begin), {rows.end - rows.begin, width}, {normed_.stride(), 1});
    kernels::layer_norm(normed, next.norm.affine(), ConvNextWeights::kEpsilon, normed);
    place(reader.conv, normed, plane(stream, layer) + reader.conv.input_bytes(rows.begin));
  }
}

// The rows before those of the pass, in front of what a layer reads, or what stands before it.
void CodecDecoder::put_history(const Stream& stream, size_t layer) {
  const CodecLayer& reader = w_->chain[layer];
  const bool next = reader.before == Before::kConvNext;
  const size_t bytes =
      next ? kNextHistory * round_up(w_->config.latent, kPanelColumns) * sizeof(float) : reader.conv.kept_bytes();
  std::byte* const end = next ? reinterpret_cast<std::byte*>(next_rows(stream)) : plane(stream, layer);
  std::copy_n(stream.work.state->histories.data() + histories_at_[layer], bytes, end - bytes);
}

// The last rows of what it read, which ends at `end`.
void CodecDecoder::save_history(const Stream& stream, size_t layer, const std::byte* end) {
  const CodecLayer& reader = w_->chain[layer];
  const size_t bytes = reader.before == Before::kConvNext
                           ? kNextHistory * round_up(w_->config.latent, kPanelColumns) * sizeof(float)
                           : reader.conv.kept_bytes();
  std::copy_n(end - bytes, bytes, stream.work.state->histories.data() + histories_at_[layer]);
}

CodecDecoder::Target CodecDecoder::target(const Stream& stream, size_t layer) {
  const CodecLayer &made = w_->chain[layer], &next = w_->chain[layer + 1];
  if (next.before == Before::kTransformer) return {.output = transformer_.input(total_).row(stream.first)};
  if (next.before == Before::kConvNext) return {.output = next_rows(stream)};
  float* const kept = planes(stream, layer + 1).kept.data();
  Target to{.ready = plane(stream, layer + 1),
            .type = next.conv.input_type,
            .activation = made.activation,
            .snake = {made.alpha.data(), made.inverse_beta.data()}};
  if (made.keeps || (probe_ && made.stage != CodecStage::kNone)) to.output = kept;
  if (made.adds) to.residual = w_->chain[layer - 1].before == Before::kConvNext ? next_rows(stream) : kept;
  if (!made.scale.empty()) to.scale = made.scale.data();
  return to;
}

// A layer's own stage: its members' shares, and the rows that it and the next one remember.
void CodecDecoder::convolve(const nn::Part& part, const Task& task, size_t layer) {
  const nn::CausalConv& conv = w_->chain[layer].conv;
  const size_t skipped = layer == task.layers.begin ? conv.input_bytes(task.first) : 0;
  const bool last = layer + 1 == w_->chain.size();
  auto& pieces = pieces_[static_cast<size_t>(part.member)];
  pieces.clear();
  for (const Stream& stream : task.streams) {
    const size_t rows = rows_of(task, stream, layer);
    const std::byte* const in = plane(stream, layer) + skipped;
    if (part.rank == 0 && w_->chain[layer].before == Before::kNothing)
      save_history(stream, layer, in + conv.input_bytes(rows));
    if (part.rank == 0 && !last) put_history(stream, layer + 1);
    if (!last) pieces.push_back({.in = in, .rows = rows, .to = target(stream, layer)});
    if (!last) continue;
    const size_t first = task.first * rows / std::max<size_t>(task.rows, 1);  // samples of the pieces before
    float* const samples = stream.work.samples.data() + first;
    conv.run(part, in, rows, {.output = samples});
    const Range own = part.split(rows);
    // Several members may find one at once.
    if (bound_samples({samples + own.begin, own.end - own.begin}))
      std::atomic_ref(stream.work.state->not_finite).store(true, std::memory_order_relaxed);
  }
  if (!last) conv.run(part, pieces, runner_.scratch(part.member, scratch_bytes_));
}

void CodecDecoder::tell(nn::Crew::Seat& seat, const Task& task, size_t layer) {
  const CodecLayer& made = w_->chain[layer];
  const bool last = layer + 1 == w_->chain.size();
  if (!probe_ || (made.stage == CodecStage::kNone && !last)) return;
  seat.stage([&](const nn::Part& part) {
    for (const Stream& stream : task.streams) {
      if (part.rank != 0) continue;
      const size_t rows = rows_of(task, stream, layer);
      if (!last) {
        probe_(name_of(made.stage), made.stage_index,
               {planes(stream, layer + 1).kept.data(), {rows * made.conv.up, made.conv.width}});
        continue;
      }
      const size_t first = task.first * rows / std::max<size_t>(task.rows, 1);
      probe_(name_of(made.stage), made.stage_index - 1,
             {reinterpret_cast<const float*>(plane(stream, layer)), {rows, made.conv.input_width}});
      probe_("samples", 0, {stream.work.samples.data() + first, {rows, 1}});
    }
  });
}

void CodecDecoder::run_layer(nn::Crew::Seat& seat, const Task& task, size_t layer) {
  switch (w_->chain[layer].before) {
    case Before::kNothing: break;
    case Before::kTransformer:
      transformer_.work(seat);
      seat.stage([&](const nn::Part& part) { norm_transformed(part, layer); });
      break;
    case Before::kConvNext: seat.stage([&](const nn::Part& part) { norm_next(part, layer); }); break;
  }
  seat.stage([&](const nn::Part& part) { convolve(part, task, layer); });
  tell(seat, task, layer);
}

void CodecDecoder::run_task(nn::Crew::Seat& seat, const Task& task) {
  for (size_t i = task.layers.begin; i < task.layers.end; ++i) run_layer(seat, task, i);
}

void CodecDecoder::run_stream(nn::Crew::Seat& seat, const Stream& stream) {
  run_task(seat, {.streams = {&stream, 1}, .layers = {apart_, pieces_from_}});
  const size_t all = stream.count * w_->chain[pieces_from_].rate;
  for (size_t first = 0; first < all; first += piece_rows_)
    run_task(seat, {.streams = {&stream, 1},
                    .layers = {pieces_from_, w_->chain.size()},
                    .first = first,
                    .rows = std::min(piece_rows_, all - first)});
}

void CodecDecoder::work_at_frames(nn::Crew::Seat& seat) {
  if (total_ == 0) return;
  seat.stage([&](const nn::Part& part) { quantise(part); });
  run_task(seat, {.streams = streams_, .layers = {0, apart_}});
  for (const Stream& stream : streams_) run_stream(seat, stream);
}

}  // namespace syrinx::qwen_tts
