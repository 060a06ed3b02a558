#include "nn/decoder.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/activation.h"
#include "kernels/bf16.h"
#include "kernels/cache_attention.h"
#include "kernels/narrow_gemm.h"
#include "kernels/rotary.h"
#include "kernels/swiglu.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::nn {
namespace {

View<const float, 2> some_rows(View<const float, 2> rows, size_t first, size_t count) {
  if (rows.data() == nullptr) return {};
  return {rows.row(first), {count, rows.extent(1)}, {rows.stride(0), 1}};
}
View<float, 2> some_rows(View<float, 2> rows, size_t first, size_t count) {
  return {rows.row(first), {count, rows.extent(1)}, {rows.stride(0), 1}};
}

}  // namespace

void Decoder::Rounded::prepare(size_t rows, size_t channels) {
  stride = round_up(channels, kPanelColumns);
  numbers = Buffer<uint16_t>(rows * stride);
}

Decoder::Decoder(const DecoderWeights& weights, Runner& runner, const Limits& limits)
    : config_(weights.shape), runner_(runner), weights_(&weights) {
  SYRINX_CHECK(!ready_rows() || (!config_.cross && config_.segment == 0),
               "row products of a decoder that is no codec's");
  prepare(weights, limits);
  reserve(weights, limits);
}

void Decoder::prepare(const DecoderWeights& weights, const Limits& limits) {
  const DecoderConfig& c = config_;
  const auto prepare_rows = [](Plane& plane, size_t rows, size_t channels) {
    plane.prepare(rows, channels, kernels::Storage::kF32);
  };
  const auto prepare = [&](Plane& plane, size_t channels) { prepare_rows(plane, limits.rows, channels); };
  norm_.prepare(limits.rows, c.width, runner_.team().size());
  prepare(x_, c.width);
  prepare(qkv_, c.query_width() + 2 * c.key_width());
  prepare(attended_, c.query_width());
  if (c.mlp == Mlp::kSwiGlu) {
    prepare(hidden_, 2 * round_up(c.hidden, kPanelColumns));
    prepare(gated_, c.hidden);
  } else if (!bf16_rows()) {
    prepare(hidden_, c.hidden);
  }
  if (bf16_rows()) {
    normed16_.prepare(limits.rows, c.width);
    attended16_.prepare(limits.rows, c.query_width());
    hidden16_.prepare(limits.rows, c.hidden);
  }
  if (c.layer_scale && !ready_rows()) prepare(scaled_, c.width);
  for (Plane* plane : {&cosines_, &sines_}) prepare(*plane, weights.theta.size());
  const size_t pieces = limits.streams * (c.segment == 0 ? 1 : limits.positions / c.segment + 2);
  for (Pass* pass : {&all_, &last_}) {
    pass->streams.reserve(limits.streams);
    pass->query_row.reserve(limits.streams);
    pass->rows_before.reserve(limits.streams);
    pass->groups.reserve(limits.streams);
    pass->pieces.reserve(pieces);
    if (c.stream_gain) pass->gains.resize(limits.rows);
  }
  if (c.segment > 0) {
    prepare_rows(parts_, pieces, c.query_width());
    prepare_rows(log_sums_, pieces, c.heads);
  }
}

void Decoder::reserve(const DecoderWeights& weights, const Limits& limits) {
  for (const DecoderBlock& block : weights.layers) {
    if (ready_rows()) break;
    for (const auto* matrix : {&block.in, &block.out, &block.up, &block.down})
      reserve_linear(runner_, matrix->view, limits.rows);
    if (!block.cross) continue;
    for (const auto* matrix : {&block.cross->query, &block.cross->out})
      reserve_linear(runner_, matrix->view, limits.rows);
  }
  const size_t cross = limits.cross_positions == 0 ? 0
                                                   : 2 * limits.rows * config_.head_size +
                                                         kernels::cache_attention_scratch_size(limits.cross_positions);
  const size_t floats = std::max(cross, kernels::cache_attention_scratch_size(limits.positions));
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, floats * sizeof(float));
}

View<float, 2> Decoder::input(size_t rows) {
  SYRINX_CHECK(rows <= x_.rows(), "{} rows in a pass of {}", rows, x_.rows());
  return rows_of(x_, rows);
}

void Decoder::check_stream(const Rows& stream) const {
  const KvCache& cache = *stream.cache;
  SYRINX_CHECK(cache.layers == config_.layers && cache.key_heads == config_.key_heads &&
                   cache.head_size == config_.head_size && cache.type == config_.cache &&
                   (cache.window == 0 || cache.window == config_.window),
               "a cache of {} layers of {} x {} in {}, window {}", cache.layers, cache.key_heads, cache.head_size,
               dtype_name(cache.type), cache.window);
  SYRINX_CHECK(stream.count > 0 && stream.count <= cache.pass_room() && stream.first >= all_.rows &&
                   stream.first + stream.count <= x_.rows(),
               "rows {} to {} of a pass of {}", stream.first, stream.first + stream.count, x_.rows());
  SYRINX_CHECK(!config_.cross ||
                   (stream.cross != nullptr && stream.cross->positions > 0 && stream.cross->layers == config_.layers &&
                    stream.cross->heads == config_.heads && stream.cross->head_size == config_.head_size &&
                    (stream.cross->type == DType::kF32 || stream.cross->type == DType::kBF16)),
               "a stream of a decoder with cross-attention needs a CrossCache of {} layers of {} x {} in f32 or bf16",
               config_.layers, config_.heads, config_.head_size);
  SYRINX_CHECK(!config_.stream_gain || stream.gain != nullptr, "a stream without gain");
}

void Decoder::begin(const DecoderWeights& weights, std::span<const Rows> streams, Output wanted) {
  SYRINX_CHECK(weights.layers.size() == config_.layers && streams.size() <= all_.streams.capacity(),
               "{} layers of {}, {} streams of {}", weights.layers.size(), config_.layers, streams.size(),
               all_.streams.capacity());
  weights_ = &weights;
  wanted_ = wanted;
  for (Pass* pass : {&all_, &last_}) {
    pass->rows = 0;
    pass->single = true;
    pass->in_parts = false;
    pass->streams.clear();
    pass->query_row.clear();
    pass->rows_before.clear();
    pass->groups.clear();
    pass->pieces.clear();
    std::fill(pass->gains.begin(), pass->gains.end(), nullptr);
  }
  for (const Rows& stream : streams) {
    check_stream(stream);
    set_angles(stream);
    add_stream(all_, stream, stream.first, 0);
    if (wanted != Output::kLastRows) continue;
    Rows last = stream;
    last.first = last_.rows;
    last.count = 1;
    add_stream(last_, last, stream.first + stream.count - 1, stream.count - 1);
  }
}

void Decoder::set_angles(const Rows& stream) {
  const size_t end = stream.first + stream.count;
  if (config_.rotary != Rotary::kNone)
    kernels::rotary_angles(weights_->theta, stream.cache->position, rows_of(cosines_, stream.first, end),
                           rows_of(sines_, stream.first, end));
}

void Decoder::add_stream(Pass& pass, const Rows& stream, size_t query_row, size_t rows_before) const {
  if (config_.stream_gain) std::fill_n(pass.gains.begin() + stream.first, stream.count, stream.gain);
  if (config_.cross) {
    const bool joins = !pass.groups.empty() && pass.groups.back().cross == stream.cross && stream.first == pass.rows;
    if (!joins) pass.groups.push_back({.cross = stream.cross, .first = stream.first});
    pass.groups.back().rows += stream.count;
  }
  pass.single = pass.single && stream.count == 1;
  pass.rows = stream.first + stream.count;
  pass.streams.push_back(stream);
  pass.query_row.push_back(query_row);
  pass.rows_before.push_back(rows_before);
  add_pieces(pass, pass.streams.size() - 1);
}

// Parts are of positions alone, so that a stream has the same ones whatever goes on beside it.
void Decoder::add_pieces(Pass& pass, size_t stream) const {
  const size_t count = pass.streams[stream].count, segment = config_.segment;
  const size_t position = pass.streams[stream].cache->position + pass.rows_before[stream];
  const size_t from = config_.window == 0 ? 0 : position + 1 - std::min(config_.window, position + 1);
  if (segment == 0 || count > 1 || from / segment == position / segment)
    return pass.pieces.push_back({.stream = stream});
  pass.in_parts = true;
  for (size_t i = from / segment; i <= position / segment; ++i)
    pass.pieces.push_back({.stream = stream, .from = i * segment, .to = (i + 1) * segment, .whole = false});
}

void Decoder::end() {
  for (const Rows& stream : all_.streams) stream.cache->position += stream.count;
}

void Decoder::work(Crew::Seat& seat, const Range& layers) {
  if (all_.rows == 0) return;
  for (size_t i = layers.begin; i < layers.end; ++i) {
    // A prompt's last layer leaves keys and values; its other results are not used.
    const bool last = i + 1 == config_.layers, goes_on = wanted_ != Output::kNone || !last;
    const Pass& pass = last && wanted_ == Output::kLastRows ? last_ : all_;
    attention_block(seat, i, goes_on, pass);
    if (!goes_on) return;
    if (config_.cross) cross_block(seat, i, pass);
    mlp_block(seat, i, pass);
    // The others read x meanwhile; it is written again behind the next stage only.
    seat.together([&](const Part& part) {
      if (probe_ && part.rank == 0) probe_(i, rows_of(x_, pass.rows));
    });
  }
}

RowNorm::Work Decoder::normed(const Pass& pass, const NormWeights& norm) {
  return {.kind = config_.norm, .weights = &norm, .epsilon = config_.epsilon, .x = rows_of(x_, pass.rows)};
}

// The stage in which rows are normed, where it needs one.
void Decoder::norm_stage(Crew::Seat& seat, const RowNorm::Work& work) {
  if (!ready_rows()) return norm_.stage(seat, work);
  seat.stage([&](const Part& part) {
    const Range own = part.split(work.x.extent(0));
    if (own.begin == own.end) return;
    const View<const float, 2> rows = norm_.share(own, work);
    if (bf16_rows()) kernels::round_rows(rows, normed16_.at(own.begin, 0), normed16_.stride);
  });
}

// This member's share of y = x W + b (+ addend); then(share) may go on with it.  Rows of streams that have one each go
// through one row at a time in f32, others stream by stream: neither depends on the other streams.
template <class Then>
void Decoder::product(const Part& part, const Pass& pass, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
                      View<const float, 2> addend, View<float, 2> y, size_t grain, const Then& then) {
  if (pass.single || kernels::is_narrow(matrix.view.type))
    return then(stream_linear_part(runner_, part, matrix.view, x, addend, y, grain));
  for (const Rows& stream : pass.streams) {
    Share own =
        linear_part(runner_, part, matrix.view, some_rows(x, stream.first, stream.count),
                    some_rows(addend, stream.first, stream.count), some_rows(y, stream.first, stream.count), grain);
    own.rows.begin += stream.first;
    own.rows.end += stream.first;
    then(own);
  }
}

// This member's share of a product of ready rows, x or what `rounded` has of it; `work` says where the results go.
kernels::RowConvShare Decoder::row_product(const Part& part, const Pass& pass, const kernels::OwnedMatrix& matrix,
                                           View<const float, 2> x, Rounded& rounded, kernels::RowConv work,
                                           size_t grain) const {
  work.rows = pass.rows;
  if (bf16_rows()) {
    work.input = rounded.at(0, 0);
    work.input_type = kernels::RowType::kBf16;
    work.row_step = rounded.stride;
  } else {
    work.input = x.data();
    work.row_step = x.stride(0);
  }
  const auto own = kernels::share_row_conv(matrix.view, pass.rows, part.rank, part.size, grain);
  kernels::row_conv(matrix.view, work, own.rows, own.panels);
  return own;
}

// x += scale * (W from + b); an empty scale is one.
void Decoder::add_product(const Part& part, const Pass& pass, const kernels::OwnedMatrix& matrix, Plane& from,
                          Rounded& rounded, const std::vector<float>& scale) {
  const View<float, 2> x = rows_of(x_, pass.rows);
  if (ready_rows()) {
    row_product(part, pass, matrix, from.view(), rounded,
                {.output = x.data(),
                 .stride = x.stride(0),
                 .residual = x.data(),
                 .residual_stride = x.stride(0),
                 .scale = scale.empty() ? nullptr : scale.data()});
    return;
  }
  if (scale.empty()) return product(part, pass, matrix, rows_of(from, pass.rows), x, x, 1, [](const Share&) {});
  product(part, pass, matrix, rows_of(from, pass.rows), {}, rows_of(scaled_, pass.rows), 1, [&](const Share& own) {
    const size_t end = std::min(own.columns.end, config_.width);
    for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
      float* const to = x.row(n);
      const float* const branch = scaled_.f32(n);
      for (size_t i = own.columns.begin; i < end; ++i) to[i] += scale[i] * branch[i];
    }
  });
}

// All rows are placed in the cache; those of `pass` attend.
void Decoder::attention_block(Crew::Seat& seat, size_t layer, bool goes_on, const Pass& pass) {
  const DecoderBlock& block = weights_->layers[layer];
  const RowNorm::Work work = normed(all_, block.before);
  norm_stage(seat, work);
  seat.stage([&](const Part& part) {
    if (ready_rows()) {
      row_product(part, all_, block.in, norm_.shared(), normed16_, {.output = qkv_.f32(), .stride = qkv_.stride()});
    } else {
      product(part, all_, block.in, norm_.rows(part, work), {}, rows_of(qkv_, all_.rows), 1, [](const Share&) {});
    }
  });
  seat.stage([&](const Part& part) {
    attend(part, layer, goes_on, pass);
    if (&pass == &last_ && part.rank == 0) move_last_rows();
  });
  if (!goes_on) return;
  if (pass.in_parts) {
    seat.stage([&](const Part& part) { attend_pieces(part, layer, pass); });
    seat.stage([&](const Part& part) { merge_pieces(part, pass); });
  }
  seat.stage(
      [&](const Part& part) { add_product(part, pass, block.out, attended_, attended16_, block.attention_scale); });
}

// The last row of each stream becomes row n of x, n the stream's number.
void Decoder::move_last_rows() {
  for (size_t n = 0; n < last_.rows; ++n)
    if (last_.query_row[n] != n) std::copy_n(x_.f32(last_.query_row[n]), config_.width, x_.f32(n));
}

void Decoder::cross_block(Crew::Seat& seat, size_t layer, const Pass& pass) {
  const CrossBlock& block = *weights_->layers[layer].cross;
  const RowNorm::Work work = normed(pass, block.norm);
  norm_.stage(seat, work);
  seat.stage([&](const Part& part) {
    product(part, pass, block.query, norm_.rows(part, work), {},
            columns_of(qkv_, 0, pass.rows, 0, config_.query_width()), 1, [](const Share&) {});
  });
  seat.stage([&](const Part& part) { attend_cross(part, layer, pass); });
  seat.stage([&](const Part& part) { add_product(part, pass, block.out, attended_, attended16_, {}); });
}

void Decoder::mlp_block(Crew::Seat& seat, size_t layer, const Pass& pass) {
  const DecoderBlock& block = weights_->layers[layer];
  RowNorm::Work work = normed(pass, block.after);
  work.gains = pass.gains;
  work.gain_offset = layer * config_.width;
  norm_stage(seat, work);
  seat.stage([&](const Part& part) { up_product(part, pass, block, work); });
  seat.stage([&](const Part& part) {
    add_product(part, pass, block.down, config_.mlp == Mlp::kSwiGlu ? gated_ : hidden_, hidden16_, block.mlp_scale);
  });
}

void Decoder::up_product(const Part& part, const Pass& pass, const DecoderBlock& block, const RowNorm::Work& work) {
  if (!ready_rows()) {
    // A pair of panels of gate and values belongs to one member.
    return product(part, pass, block.up, norm_.rows(part, work), {}, rows_of(hidden_, pass.rows),
                   config_.mlp == Mlp::kSwiGlu ? 2 : 1, [&](const Share& own) { activate(own); });
  }
  if (config_.mlp == Mlp::kSwiGlu) return gate_product(part, pass, block.up);
  kernels::RowConv to{.activation = config_.mlp == Mlp::kGelu ? kernels::RowActivation::kGeluErf
                                                              : kernels::RowActivation::kGeluTanh};
  if (bf16_rows()) {
    to.activated = hidden16_.at(0, 0);
    to.activated_type = kernels::RowType::kBf16;
    to.stride = hidden16_.stride;
  } else {
    to.activated = hidden_.f32();
    to.stride = hidden_.stride();
  }
  row_product(part, pass, block.up, norm_.shared(), normed16_, to);
}

// Gates and values of ready rows; whoever made a pair of panels makes what the next product reads of it.
void Decoder::gate_product(const Part& part, const Pass& pass, const kernels::OwnedMatrix& up) {
  const kernels::RowConvShare own =
      row_product(part, pass, up, norm_.shared(), normed16_, {.output = hidden_.f32(), .stride = hidden_.stride()}, 2);
  const size_t first = own.panels.begin / 2, count = own.panels.end / 2 - first, column = first * kPanelColumns;
  for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
    float* const gated = gated_.f32(n) + column;
    kernels::swiglu_panels(hidden_.f32(n) + 2 * column, count, gated);
    if (bf16_rows())
      kernels::round_rows({gated, {1, count * kPanelColumns}}, hidden16_.at(n, column), hidden16_.stride);
  }
}

void Decoder::activate(const Share& own) {
  const size_t first = own.columns.begin, count = own.columns.end - first;
  for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
    const std::span<float> columns(hidden_.f32(n) + first, count);
    switch (config_.mlp) {
      case Mlp::kGelu: kernels::gelu_erf(columns, columns); break;
      case Mlp::kGeluTanh: kernels::gelu_tanh(columns, columns); break;
      case Mlp::kSwiGlu:
        kernels::swiglu_panels(columns.data(), count / (2 * kPanelColumns), gated_.f32(n) + first / 2);
        break;
    }
  }
}

}  // namespace syrinx::nn
