#include "models/whisper/encoder.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/bf16.h"
#include "kernels/narrow_gemm.h"
#include "kernels/packed_attention.h"
#include "kernels/row_conv.h"

namespace syrinx::whisper {
namespace {

constexpr float kEpsilon = 1e-5f;
// Whole blocks of the products (12 and 14 rows).  Hidden rows of 2048 are then 700 kB.
constexpr size_t kTileRows = 84;
// Members' rows begin at blocks, and at an even row: keys and values are packed in pairs.
constexpr size_t kRowGrain = 14;
// Queries that a member takes at a time; blocks of the packed attention are 14.
constexpr size_t kQueryRows = 84;

// Multiplications of a job, where others may have the team between jobs: a few milliseconds of two threads.
constexpr size_t kJobProducts = 500'000'000;

// A member's part of some rows.
Range part_of(const nn::Part& part, Range all, size_t grain) {
  const Range own = part.split(all.end - all.begin, grain);
  return {all.begin + own.begin, all.begin + own.end};
}

size_t bytes_of(DType type, size_t numbers) { return numbers * dtype_size(type); }
kernels::RowType row_type(DType type) { return type == DType::kF32 ? kernels::RowType::kF32 : kernels::RowType::kBf16; }

// Head `head` of rows that hold all heads side by side.
void keep_head(View<const float, 2> all, size_t column, View<float, 2> to, size_t first) {
  for (size_t n = 0; n < all.extent(0); ++n) std::copy_n(all.row(n) + column, to.extent(1), to.row(first + n));
}
void keep_head(View<const float, 2> all, size_t column, View<uint16_t, 2> to, size_t first) {
  kernels::round_rows({all.data() + column, {all.extent(0), to.extent(1)}, {all.stride(0), 1}}, to.row(first),
                      to.stride(0));
}

}  // namespace

AudioState AudioState::make(const Model& model, size_t max_positions) {
  const Config& c = model.config();
  return {cache_type(model.precision()), c.decoder_layers, c.decoder_heads, c.width / c.decoder_heads,
          max_positions == 0 ? c.audio_positions : std::min(max_positions, c.audio_positions)};
}

Encoder::Encoder(std::shared_ptr<const Model> model, ThreadTeam& team)
    : model_(std::move(model)), runner_(team), crew_(team) {
  const Weights& w = model_->weights();
  const Config& c = w.config;
  conv_type_ = w.conv1.view.type == PanelType::kBf16 ? DType::kBF16 : DType::kF32;
  const size_t frames = kFramesPerPosition * c.audio_positions + 2;
  mel_ = Buffer<std::byte>(bytes_of(conv_type_, frames * round_up(c.mels, kPanelColumns)));
  conv_ = Buffer<std::byte>(bytes_of(conv_type_, frames * c.width));
  x_.prepare(c.audio_positions, c.width, kernels::Storage::kF32);
  attended_.prepare(c.audio_positions, c.width, kernels::Storage::kF32);
  const size_t head_size = c.width / c.encoder_heads;
  packs_ = model_->precision() != Precision::kF32 && kernels::bf16_rows_are_faster();
  size_t scratch = kernels::attention_scratch_size(c.audio_positions, head_size) * sizeof(float);
  if (packs_) {
    head_bytes_ = round_up(kernels::packed_head_bytes(c.audio_positions, head_size), 64);
    heads_ = Buffer<std::byte>(c.encoder_heads * head_bytes_);
    scratch = kernels::packed_attention_scratch_bytes(c.audio_positions, head_size);
  }
  qkv_.prepare(c.audio_positions, packs_ ? c.width : 3 * c.width, kernels::Storage::kF32);
  const auto count = [&](const kernels::OwnedMatrix& matrix) {
    if (kernels::is_narrow(matrix.view.type))
      scratch = std::max(scratch, kernels::narrow_rows_bytes(matrix.view, kTileRows));
  };
  for (const LayerWeights& layer : w.encoder)
    for (const auto* matrix : {&layer.qkv, &layer.out, &layer.ffn1, &layer.ffn2}) count(*matrix);
  for (const nn::DecoderBlock& layer : w.decoder.layers) count(layer.cross->key_value);
  for (int member = 0; member < team.size(); ++member) {
    runner_.scratch(member, scratch);
    Member own;
    own.normed = Buffer<float>(kTileRows * c.width);
    own.wide = Buffer<float>(kTileRows * std::max(c.encoder_hidden, 3 * c.width));
    members_.push_back(std::move(own));
  }
}

View<const float, 2> Encoder::output() const { return {x_.f32(), {positions_, x_.channels()}, {x_.stride(), 1}}; }

View<float, 2> Encoder::rows(nn::Plane& plane, Range range) const {
  return {plane.f32(range.begin), {range.end - range.begin, plane.channels()}, {plane.stride(), 1}};
}

void Encoder::check(View<const float, 2> mel, AudioState& audio) {
  const Config& c = model_->config();
  const size_t frames = mel.extent(0);
  SYRINX_CHECK(frames % kFramesPerPosition == 0 && mel.extent(1) == c.mels, "mel [{}, {}], needs pairs of {}", frames,
               mel.extent(1), c.mels);
  positions_ = frames / kFramesPerPosition;
  SYRINX_CHECK(positions_ >= 1 && positions_ <= c.audio_positions && positions_ <= audio.room &&
                   audio.layers == c.decoder_layers && audio.type == cache_type(model_->precision()),
               "{} positions into a state with room for {}", positions_, audio.room);
  audio.positions = positions_;
}

void Encoder::encode(View<const float, 2> mel, AudioState& audio, const BetweenJobs& between) {
  check(mel, audio);
  if (between && !probe_) return encode_in_jobs(mel, audio, between);
  const Weights& w = model_->weights();
  const Range frames{0, kFramesPerPosition * positions_}, all{0, positions_}, units{0, attended_units()};
  const auto look = [&](const nn::Part& part, std::string_view stage, size_t layer) {
    if (probe_ && part.rank == 0) probe_(stage, layer, output());
  };
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    seat.stage([&](const nn::Part& part) { pad_mel(part, mel); });
    seat.stage([&](const nn::Part& part) { convolve1(part, frames); });
    seat.stage([&](const nn::Part& part) { convolve2(part, all); });
    if (probe_) seat.stage([&](const nn::Part& part) { look(part, "conv", 0); });
    for (size_t i = 0; i < w.encoder.size(); ++i) {
      seat.stage([&](const nn::Part& part) { project(part, w.encoder[i], all); });
      seat.stage([&](const nn::Part& part) { attend(part, units); });
      // The rest of the layer needs no rows of other members, except the attention of the next layer.
      seat.together([&](const nn::Part& part) { finish_layer(part, w.encoder[i], all); });
      if (!probe_) continue;
      seat.stage([](const nn::Part&) {});
      seat.stage([&](const nn::Part& part) { look(part, "block", i); });
    }
    seat.stage([&](const nn::Part& part) { finish(part, audio, all); });
    seat.together([&](const nn::Part& part) { look(part, "encoder", 0); });
  });
}

// So many rows, or units, of so many multiplications each: whole tiles of every member where they fit.
size_t Encoder::rows_of_job(size_t products, size_t grain) const {
  const size_t rows = kJobProducts / std::max<size_t>(products, 1), members = members_.size();
  const size_t unit = members * (rows >= members * kTileRows ? std::max(grain, kTileRows) : grain);
  return std::max(rows / unit, size_t{1}) * unit;
}

// The stages of encode(), each cut by rows into jobs of its own.
void Encoder::encode_in_jobs(View<const float, 2> mel, AudioState& audio, const BetweenJobs& between) {
  const Weights& w = model_->weights();
  const Config& c = w.config;
  const auto jobs = [&](size_t count, size_t rows, const auto& body) {
    for (size_t first = 0; first < count; first += rows) {
      const Range some{first, std::min(first + rows, count)};
      runner_.team().run(
          [&](int member) { body({.member = member, .rank = member, .size = runner_.team().size()}, some); });
      between();
    }
  };
  jobs(1, 1, [&](const nn::Part& part, Range) { pad_mel(part, mel); });
  jobs(kFramesPerPosition * positions_, rows_of_job(3 * c.mels * c.width, kRowGrain),
       [&](const nn::Part& part, Range some) { convolve1(part, some); });
  jobs(positions_, rows_of_job(3 * c.width * c.width, kRowGrain),
       [&](const nn::Part& part, Range some) { convolve2(part, some); });
  const size_t projected = rows_of_job(3 * c.width * c.width, kRowGrain);
  const size_t attended = rows_of_job(products_of_unit(), 1);
  const size_t finished = rows_of_job(c.width * (c.width + 2 * c.encoder_hidden), kRowGrain);
  for (const LayerWeights& layer : w.encoder) {
    jobs(positions_, projected, [&](const nn::Part& part, Range some) { project(part, layer, some); });
    jobs(attended_units(), attended, [&](const nn::Part& part, Range some) { attend(part, some); });
    jobs(positions_, finished, [&](const nn::Part& part, Range some) { finish_layer(part, layer, some); });
  }
  jobs(positions_, rows_of_job(2 * c.decoder_layers * c.width * c.width, kRowGrain),
       [&](const nn::Part& part, Range some) { finish(part, audio, some); });
}

// The frames between two of zeros, rounded where the convolutions take bf16.
void Encoder::pad_mel(const nn::Part& part, View<const float, 2> mel) {
  const size_t frames = mel.extent(0), width = round_up(mel.extent(1), kPanelColumns);
  const size_t row_bytes = bytes_of(conv_type_, width);
  const Range own = part.split(frames);
  std::byte* const first = mel_.data() + (own.begin + 1) * row_bytes;
  const View<const float, 2> from(mel.data() + own.begin * mel.stride(0), {own.end - own.begin, mel.extent(1)},
                                  {mel.stride(0), 1});
  if (conv_type_ == DType::kBF16) {
    kernels::round_rows(from, reinterpret_cast<uint16_t*>(first), width);
  } else {
    for (size_t n = 0; n < from.extent(0); ++n)
      std::copy_n(from.row(n), from.extent(1), reinterpret_cast<float*>(first) + n * width);
  }
  if (part.rank != 0) return;
  const size_t conv_bytes = bytes_of(conv_type_, model_->config().width);
  for (const size_t row : {size_t{0}, frames + 1}) {
    std::fill_n(mel_.data() + row * row_bytes, row_bytes, std::byte{0});
    std::fill_n(conv_.data() + row * conv_bytes, conv_bytes, std::byte{0});
  }
}

void Encoder::convolve1(const nn::Part& part, Range frame_rows) {
  const Config& c = model_->config();
  const size_t width = round_up(c.mels, kPanelColumns), frames = kFramesPerPosition * positions_;
  const kernels::OwnedMatrix& matrix = model_->weights().conv1;
  const kernels::RowConv conv{.input = mel_.data(),
                              .input_type = row_type(conv_type_),
                              .rows = frames,
                              .row_step = width,
                              .tap_step = width,
                              .activated = conv_.data() + bytes_of(conv_type_, c.width),
                              .activated_type = row_type(conv_type_),
                              .stride = c.width,
                              .activation = kernels::RowActivation::kGeluErf};
  kernels::row_conv(matrix.view, conv, part_of(part, frame_rows, 1), {0, matrix.view.panel_count()});
}

void Encoder::convolve2(const nn::Part& part, Range positions) {
  const Config& c = model_->config();
  const kernels::OwnedMatrix& matrix = model_->weights().conv2;
  const kernels::RowConv conv{.input = conv_.data(),
                              .input_type = row_type(conv_type_),
                              .rows = positions_,
                              .row_step = kFramesPerPosition * c.width,
                              .tap_step = c.width,
                              .activated = x_.f32(),
                              .stride = x_.stride(),
                              .activation = kernels::RowActivation::kGeluErf};
  const Range own = part_of(part, positions, 1);
  kernels::row_conv(matrix.view, conv, own, {0, matrix.view.panel_count()});
  for (size_t n = own.begin; n < own.end; ++n) {
    const float* const position = model_->weights().encoder_positions.data() + n * c.width;
    float* const row = x_.f32(n);
    for (size_t i = 0; i < c.width; ++i) row[i] += position[i];
  }
}

// y = x W + b (+ addend) on one member's rows.
void Encoder::linear(int member, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
                     View<const float, 2> addend, View<float, 2> y) {
  const size_t count = x.extent(0);
  const Range panels{0, matrix.view.panel_count()};
  if (kernels::is_narrow(matrix.view.type)) {
    const size_t bytes = kernels::narrow_rows_bytes(matrix.view, count);
    const kernels::NarrowRows narrow = kernels::plan_narrow_rows(matrix.view, count, runner_.scratch(member, bytes));
    kernels::narrow_rows(matrix.view, x, {0, count}, narrow);
    return kernels::narrow_gemm(matrix.view, narrow, addend, y, panels);
  }
  const kernels::RowConv conv{.input = x.data(),
                              .rows = count,
                              .row_step = x.stride(0),
                              .output = y.data(),
                              .stride = y.stride(0),
                              .residual = addend.data(),
                              .residual_stride = addend.stride(0)};
  kernels::row_conv(matrix.view, conv, {0, count}, panels);
}

// qkv = W_qkv norm(x)
void Encoder::project(const nn::Part& part, const LayerWeights& layer, Range positions) {
  Member& own = members_[static_cast<size_t>(part.member)];
  const size_t width = model_->config().width;
  const Range range = part_of(part, positions, kRowGrain);
  for (size_t first = range.begin; first < range.end; first += kTileRows) {
    const Range tile{first, std::min(first + kTileRows, range.end)};
    const size_t count = tile.end - tile.begin;
    const View<float, 2> normed(own.normed.data(), {count, width});
    kernels::layer_norm(rows(x_, tile), layer.norm.affine(), kEpsilon, normed);
    const View<float, 2> qkv = packs_ ? View<float, 2>(own.wide.data(), {count, 3 * width}) : rows(qkv_, tile);
    linear(part.member, layer.qkv, normed, {}, qkv);
    if (packs_) pack_tile(qkv, tile.begin);
  }
}

// Rows from `first` on, while they are in the cache: the queries go to their plane, keys and values into the heads.
void Encoder::pack_tile(View<const float, 2> qkv, size_t first) {
  const Config& c = model_->config();
  const size_t count = qkv.extent(0), size = c.width / c.encoder_heads;
  for (size_t n = 0; n < count; ++n) std::copy_n(qkv.row(n), c.width, qkv_.f32(first + n));
  for (size_t head = 0; head < c.encoder_heads; ++head) {
    const auto columns = [&](size_t begin) {
      return View<const float, 2>(qkv.data() + begin + head * size, {count, size}, {qkv.stride(0), 1});
    };
    kernels::pack_head(columns(c.width), columns(2 * c.width), first, positions_,
                       {heads_.data() + head * head_bytes_, head_bytes_});
  }
}

// Members share heads, or heads times pieces of the queries where keys and values are packed.
size_t Encoder::attended_units() const {
  const size_t heads = model_->config().encoder_heads;
  return packs_ ? heads * ((positions_ + kQueryRows - 1) / kQueryRows) : heads;
}

size_t Encoder::products_of_unit() const {
  const Config& c = model_->config();
  return 2 * positions_ * (packs_ ? kQueryRows : positions_) * (c.width / c.encoder_heads);
}

void Encoder::attend(const nn::Part& part, Range units) {
  packs_ ? attend_packed(part, units) : attend_plain(part, units);
}

void Encoder::attend_plain(const nn::Part& part, Range all) {
  const Config& c = model_->config();
  const size_t head_size = c.width / c.encoder_heads;
  const auto columns = [&](size_t first) {
    return View<const float, 2>(qkv_.f32() + first, {positions_, c.width}, {qkv_.stride(), 1});
  };
  const kernels::AttentionInput input{.q = columns(0),
                                      .k = columns(c.width),
                                      .v = columns(2 * c.width),
                                      .head_width = head_size,
                                      .scale = 1.0f / std::sqrt(static_cast<float>(head_size))};
  const size_t floats = kernels::attention_scratch_size(positions_, head_size);
  auto* const scratch = reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data());
  const Range heads = part_of(part, all, 1);
  kernels::attention(input, heads.begin, heads.end, {scratch, floats}, rows(attended_, {0, positions_}));
}

// Members share heads times pieces of the queries, so that a number of heads that they do not divide costs nothing.
void Encoder::attend_packed(const nn::Part& part, Range all) {
  const Config& c = model_->config();
  const size_t size = c.width / c.encoder_heads, pieces = (positions_ + kQueryRows - 1) / kQueryRows;
  const size_t bytes = kernels::packed_attention_scratch_bytes(positions_, size);
  const Range units = part_of(part, all, 1);
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    const size_t head = unit / pieces, first = unit % pieces * kQueryRows;
    const kernels::PackedAttention input{.q = {qkv_.f32() + head * size, {positions_, size}, {qkv_.stride(), 1}},
                                         .head = {heads_.data() + head * head_bytes_, head_bytes_},
                                         .keys = positions_,
                                         .scale = 1.0f / std::sqrt(static_cast<float>(size))};
    kernels::packed_attention(input, {first, std::min(first + kQueryRows, positions_)},
                              runner_.scratch(part.member, bytes),
                              {attended_.f32() + head * size, {positions_, size}, {attended_.stride(), 1}});
  }
}

// x += W_out attended; x += W_2 gelu(W_1 norm(x))
void Encoder::finish_layer(const nn::Part& part, const LayerWeights& layer, Range positions) {
  const Config& c = model_->config();
  Member& own = members_[static_cast<size_t>(part.member)];
  const Range range = part_of(part, positions, kRowGrain);
  for (size_t first = range.begin; first < range.end; first += kTileRows) {
    const Range tile{first, std::min(first + kTileRows, range.end)};
    const size_t count = tile.end - tile.begin;
    const View<float, 2> x = rows(x_, tile), normed(own.normed.data(), {count, c.width});
    const View<float, 2> hidden(own.wide.data(), {count, c.encoder_hidden});
    linear(part.member, layer.out, rows(attended_, tile), x, x);
    kernels::layer_norm(x, layer.ffn_norm.affine(), kEpsilon, normed);
    linear(part.member, layer.ffn1, normed, {}, hidden);
    const std::span<float> all(hidden.data(), hidden.size());
    kernels::gelu_erf(all, all);
    linear(part.member, layer.ffn2, hidden, x, x);
  }
}

// The last norm, and from it every decoder layer's cross keys and values.
void Encoder::finish(const nn::Part& part, AudioState& audio, Range positions) {
  const Range range = part_of(part, positions, kRowGrain);
  for (size_t first = range.begin; first < range.end; first += kTileRows) {
    const Range tile{first, std::min(first + kTileRows, range.end)};
    kernels::layer_norm(rows(x_, tile), model_->weights().encoder_norm.affine(), kEpsilon, rows(x_, tile));
    keep_cross(part.member, tile, audio);
  }
}

void Encoder::keep_cross(int member, Range range, AudioState& audio) {
  const Config& c = model_->config();
  const size_t count = range.end - range.begin, size = audio.head_size;
  const View<float, 2> both(members_[static_cast<size_t>(member)].wide.data(), {count, 2 * c.width});
  for (size_t i = 0; i < audio.layers; ++i) {
    linear(member, model_->weights().decoder.layers[i].cross->key_value, rows(x_, range), {}, both);
    for (size_t head = 0; head < audio.heads; ++head) {
      if (audio.type == DType::kF32) {
        keep_head(both, head * size, audio.head_keys<float>(i, head), range.begin);
        keep_head(both, c.width + head * size, audio.head_values<float>(i, head), range.begin);
      } else {
        keep_head(both, head * size, audio.head_keys<uint16_t>(i, head), range.begin);
        keep_head(both, c.width + head * size, audio.head_values<uint16_t>(i, head), range.begin);
      }
    }
  }
}

}  // namespace syrinx::whisper
