#include "models/pocket_tts/flow_lm.h"

#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "kernels/cache_attention.h"
#include "kernels/rotary.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::pocket {
using nn::columns_of;
using nn::rows_of;

namespace {

constexpr float kEpsilon = 1e-5f;
// Rows of one pass of a prefill: whole blocks of the matrix product (conv.h), and scratch that does not grow with text.
constexpr size_t kPassRows = 126;

}  // namespace

FlowLm::FlowLm(std::shared_ptr<const FlowLmWeights> weights, nn::Runner& runner, size_t streams)
    : weights_(std::move(weights)), runner_(runner), crew_(runner.team()) {
  SYRINX_CHECK(streams >= 1 && streams <= kMaxStreams, "{} streams", streams);
  const FlowLmWeights& w = *weights_;
  const TransformerConfig& t = w.config.transformer;
  const auto prepare = [](nn::Plane& plane, size_t rows, size_t channels) {
    plane.prepare(rows, channels, kernels::Storage::kF32);
  };
  prepare(voice_, kPassRows, w.voice_width);
  prepare(text_, kPassRows, w.text_width());
  prepare(latent_, streams, w.latent);
  for (nn::Plane* plane : {&x_, &normed_}) prepare(*plane, kPassRows, t.width);
  prepare(qkv_, kPassRows, t.attention_width + 2 * t.key_width());
  prepare(attended_, kPassRows, t.attention_width);
  prepare(hidden_, kPassRows, t.hidden);
  for (nn::Plane* plane : {&cosines_, &sines_}) prepare(*plane, kPassRows, w.theta.size());
  prepare(condition_, streams, w.config.condition);
  prepare(logit_, streams, 1);
  segments_.reserve(streams);
  for (const FlowLmLayer& layer : w.layers) {
    for (const auto* matrix : {&layer.in_proj, &layer.out_proj, &layer.linear1, &layer.linear2})
      nn::reserve_linear(runner_, matrix->view, kPassRows);
  }
  for (const auto* matrix : {&w.input, &w.eos, &w.z_proj}) nn::reserve_linear(runner_, matrix->view, kMaxStreams);
  const size_t attention_bytes = kernels::cache_attention_scratch_size(kMaxPositions) * sizeof(float);
  for (int member = 0; member < runner_.team().size(); ++member) runner_.scratch(member, attention_bytes);
}

Status FlowLm::check_room(const FlowLmState& state, size_t rows) const {
  if (rows <= state.room()) return {};
  return fail(Code::kLimitExceeded, "{} rows more after position {} of a stream that has room for {}", rows,
              state.position, state.shared() + state.capacity);
}

bool FlowLm::needs_bos(const FlowLmState& state) const {
  return state.position == 0 && !weights_->bos_before_voice.empty();
}

void FlowLm::append_bos(FlowLmState& state) {
  std::copy(weights_->bos_before_voice.begin(), weights_->bos_before_voice.end(), x_.f32());
  append_rows("voice", 1, state);
}

// The first `rows` rows of x_ become the next positions.
void FlowLm::append_rows(std::string_view stage, size_t rows, FlowLmState& state) {
  if (probe_) probe_(stage, 0, rows_of(x_, rows));
  segments_.assign({Segment{&state, 0, rows}});
  begin_pass(rows);
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    run_layers(seat, false, static_cast<bool>(probe_));
  });
  end_pass();
}

Status FlowLm::prefill_voice(View<const float, 2> latents, FlowLmState& state) {
  return prefill_rows(latents, false, state);
}

Status FlowLm::prefill_projected(View<const float, 2> projected, FlowLmState& state) {
  return prefill_rows(projected, true, state);
}

Status FlowLm::prefill_rows(View<const float, 2> voice, bool projected, FlowLmState& state) {
  nn::Plane& plane = projected ? x_ : voice_;
  const size_t count = voice.extent(0), width = plane.channels();
  if (voice.extent(1) != width)
    return fail(Code::kInvalidArgument, "voice frames of {} numbers, the model takes {}", voice.extent(1), width);
  SYRINX_TRY_VOID(check_room(state, count + (needs_bos(state) ? 1 : 0)));
  if (needs_bos(state)) append_bos(state);
  for (size_t first = 0; first < count; first += kPassRows) {
    const size_t rows = std::min(kPassRows, count - first);
    for (size_t n = 0; n < rows; ++n) std::copy_n(voice.row(first + n), width, plane.f32(n));
    if (!projected) nn::linear(runner_, weights_->voice_proj.view, rows_of(voice_, rows), {}, rows_of(x_, rows));
    append_rows("voice", rows, state);
  }
  if (!projected) weights_->release_file();
  return {};
}

Status FlowLm::prefill_text(std::span<const int32_t> ids, FlowLmState& state) {
  const FlowLmWeights& w = *weights_;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= w.config.text_bins)
      return fail(Code::kInvalidArgument, "token {} of a model that knows {}; its tokenizer is another model's", id,
                  w.config.text_bins);
  }
  SYRINX_TRY_VOID(check_room(state, ids.size()));
  nn::Plane& embedded = w.config.text_rank > 0 ? text_ : x_;
  for (size_t first = 0; first < ids.size(); first += kPassRows) {
    const size_t rows = std::min(kPassRows, ids.size() - first);
    for (size_t n = 0; n < rows; ++n) w.text_table.copy_row(static_cast<size_t>(ids[first + n]), embedded.f32(n));
    if (w.config.text_rank > 0) nn::linear(runner_, w.text_proj.view, rows_of(text_, rows), {}, rows_of(x_, rows));
    append_rows("text", rows, state);
  }
  w.release_file();
  return {};
}

FlowLm::Steps FlowLm::step(std::span<const Stream> streams) {
  begin_step(streams);
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    work_at_step(seat);
  });
  return end_step();
}

void FlowLm::begin_step(std::span<const Stream> streams) {
  SYRINX_CHECK(!streams.empty() && streams.size() <= latent_.rows(), "{} streams, made for {}", streams.size(),
               latent_.rows());
  segments_.clear();
  for (size_t n = 0; n < streams.size(); ++n) {
    const float* const latent = streams[n].latent != nullptr ? streams[n].latent : weights_->bos.data();
    std::copy_n(latent, weights_->latent, latent_.f32(n));
    FlowLmState& state = *streams[n].state;
    if (state.room() == 0) {
      state.full = true;
    } else {
      segments_.push_back({&state, n, 1});
    }
  }
  begin_pass(streams.size());
}

void FlowLm::work_at_step(nn::Crew::Seat& seat) {
  const FlowLmWeights& w = *weights_;
  const auto linear = [&](const nn::Part& part, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
                          nn::Plane& y) {
    nn::stream_linear_part(runner_, part, matrix.view, x, {}, rows_of(y, rows_));
  };
  seat.stage([&](const nn::Part& part) { linear(part, w.input, rows_of(latent_, rows_), x_); });
  run_layers(seat, true, true);
  if (w.config.project_condition) {
    norm_rows(seat, w.out_norm);
    seat.stage([&](const nn::Part& part) { linear(part, w.z_proj, normed(part, w.out_norm), condition_); });
  } else {
    seat.stage([&](const nn::Part& part) {
      const Range own = part.split(rows_);
      kernels::layer_norm(rows_of(x_, own.begin, own.end), w.out_norm.affine(), kEpsilon,
                          rows_of(condition_, own.begin, own.end));
    });
  }
  seat.stage([&](const nn::Part& part) { linear(part, w.eos, rows_of(condition_, rows_), logit_); });
}

FlowLm::Steps FlowLm::end_step() {
  end_pass();
  return {rows_of(condition_, rows_), logit_.f32(), logit_.stride()};
}

void FlowLm::begin_pass(size_t rows) {
  rows_ = rows;
  for (const Segment& segment : segments_) {
    const FlowLmState& state = *segment.state;
    const TransformerConfig& t = weights_->config.transformer;
    SYRINX_CHECK(state.layers == weights_->layers.size() && state.key_heads == t.key_heads &&
                     state.head_size == t.head_size() && state.type == cache_type(weights_->precision),
                 "a state of {} layers of {} x {} in {}", state.layers, state.key_heads, state.head_size,
                 dtype_name(state.type));
    SYRINX_CHECK(segment.rows <= state.room() && segment.first + segment.rows <= rows, "{} rows", segment.rows);
    const size_t end = segment.first + segment.rows;
    kernels::rotary_angles(weights_->theta, state.position, rows_of(cosines_, segment.first, end),
                           rows_of(sines_, segment.first, end));
  }
}

void FlowLm::end_pass() {
  for (const Segment& segment : segments_) segment.state->position += segment.rows;
}

// All layers on the rows of x_: x += W_out attention(W_in norm1(x)), x += W_2 gelu(W_1 norm2(x)), section 3.2.
void FlowLm::run_layers(nn::Crew::Seat& seat, bool step, bool need_output) {
  using nn::Part;
  const auto linear = [&](const Part& part, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
                          View<const float, 2> addend, View<float, 2> y) {
    return step ? nn::stream_linear_part(runner_, part, matrix.view, x, addend, y)
                : nn::linear_part(runner_, part, matrix.view, x, addend, y);
  };
  const auto gelu = weights_->config.transformer.gelu_erf ? kernels::gelu_erf : kernels::gelu_tanh;
  const View<float, 2> x = rows_of(x_, rows_);
  for (size_t i = 0; i < weights_->layers.size(); ++i) {
    const FlowLmLayer& layer = weights_->layers[i];
    // A prompt's last layer leaves keys and values; what it would compute from them is read by nobody.
    const bool goes_on = need_output || i + 1 < weights_->layers.size();
    norm_rows(seat, layer.norm1);
    seat.stage(
        [&](const Part& part) { linear(part, layer.in_proj, normed(part, layer.norm1), {}, rows_of(qkv_, rows_)); });
    seat.stage([&](const Part& part) { attend(part, i, goes_on); });
    if (!goes_on) return;
    seat.stage([&](const Part& part) { linear(part, layer.out_proj, rows_of(attended_, rows_), x, x); });
    norm_rows(seat, layer.norm2);
    seat.stage([&](const Part& part) {
      const nn::Share own = linear(part, layer.linear1, normed(part, layer.norm2), {}, rows_of(hidden_, rows_));
      for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
        const std::span<float> columns(hidden_.f32(n) + own.columns.begin, own.columns.end - own.columns.begin);
        gelu(columns, columns);
      }
    });
    seat.stage([&](const Part& part) { linear(part, layer.linear2, rows_of(hidden_, rows_), x, x); });
    // The others read x meanwhile; it is written again behind the next stage only.
    seat.together([&](const Part& part) {
      if (probe_ && part.rank == 0) probe_("layer", i, x);
    });
  }
}

// A single row is cheaper normed by every member for itself, in normed(), than once and waited for.
void FlowLm::norm_rows(nn::Crew::Seat& seat, const NormWeights& norm) {
  if (rows_ == 1) return;
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(rows_);
    kernels::layer_norm(rows_of(x_, own.begin, own.end), norm.affine(), kEpsilon, rows_of(normed_, own.begin, own.end));
  });
}

View<const float, 2> FlowLm::normed(const nn::Part& part, const NormWeights& norm) {
  if (rows_ > 1) return rows_of(normed_, rows_);
  const size_t own = static_cast<size_t>(part.member);
  kernels::layer_norm(rows_of(x_, 1), norm.affine(), kEpsilon, rows_of(normed_, own, own + 1));
  return rows_of(normed_, own, own + 1);
}

// Rotates and keeps the new keys, keeps the values, attends.  Members share the key heads of all segments, each with
// the queries that read it, so that nobody reads what another is writing; the segments of one head follow each other,
// so that a voice that they share is fetched once.
void FlowLm::attend(const nn::Part& part, size_t layer, bool need_output) {
  const size_t segments = segments_.size();
  const Range units = part.split(segments * weights_->config.transformer.key_heads);
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    const Segment& segment = segments_[unit % segments];
    if (segment.state->type == DType::kF32) {
      attend_head<float>(part, segment, layer, unit / segments, need_output);
    } else {
      attend_head<uint16_t>(part, segment, layer, unit / segments, need_output);
    }
  }
}

template <class T>
void FlowLm::attend_head(const nn::Part& part, const Segment& segment, size_t layer, size_t key_head,
                         bool need_output) {
  const TransformerConfig& t = weights_->config.transformer;
  const size_t head = t.head_size(), group = t.heads / t.key_heads;
  const size_t at = segment.first, rows = segment.rows, key_column = t.attention_width + key_head * head;
  FlowLmState& state = *segment.state;
  const View<const float, 2> cosines = rows_of(cosines_, at, at + rows), sines = rows_of(sines_, at, at + rows);
  const View<float, 2> new_keys = columns_of(qkv_, at, rows, key_column, head);
  const View<float, 2> new_values = columns_of(qkv_, at, rows, key_column + t.key_width(), head);
  const View<T, 2> keys = state.head_keys<T>(layer, key_head), values = state.head_values<T>(layer, key_head);
  kernels::rotary(cosines, sines, new_keys);
  const size_t first = state.position - state.shared();
  nn::copy_rows(new_keys, {keys.row(first), {rows, head}});
  nn::copy_rows(new_values, {values.row(first), {rows, head}});
  if (!need_output) return;
  const View<float, 2> queries = columns_of(qkv_, at, rows, key_head * group * head, group * head);
  kernels::rotary(cosines, sines, queries);
  kernels::CacheAttention<T> input;
  input.q = queries;
  input.keys = keys;
  input.values = values;
  if (state.voice != nullptr && state.voice->position > 0) {
    input.prefix_keys = state.voice->template head_keys<T>(layer, key_head);
    input.prefix_values = state.voice->template head_values<T>(layer, key_head);
  }
  input.heads = group;
  input.key_heads = 1;
  input.head_size = head;
  input.first_position = state.position;
  input.scale = 1.0f / std::sqrt(static_cast<float>(head));
  const size_t floats = kernels::cache_attention_scratch_size(state.shared() + state.capacity);
  auto* const scratch = reinterpret_cast<float*>(runner_.scratch(part.member, floats * sizeof(float)).data());
  kernels::cache_attention(input, {0, group}, {scratch, floats},
                           columns_of(attended_, at, rows, key_head * group * head, group * head));
}

}  // namespace syrinx::pocket
