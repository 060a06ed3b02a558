#include "models/pocket_tts/flow_lm.h"

#include <algorithm>

#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::pocket {
using nn::rows_of;

namespace {

// Rows of one pass of a prefill: whole blocks of the matrix product (conv.h), and scratch that does not grow with text.
constexpr size_t kPassRows = 126;

// pass(rows) for each pass over `count` rows.  A pass is cut into nearly equal parts, so that no row is alone that was
// not: f32 takes a single row by another way.
template <class Pass>
void in_passes(size_t count, const nn::BetweenJobs& between, const Pass& pass) {
  for (size_t first = 0; first < count; first += kPassRows) {
    const size_t rows = std::min(kPassRows, count - first);
    const size_t parts = between ? (rows + FlowLm::kRowsOfJob - 1) / FlowLm::kRowsOfJob : 1;
    for (size_t i = 0; i < parts; ++i) {
      if (between && first + i > 0) between();
      const Range part = split_range(rows, static_cast<int>(i), static_cast<int>(parts));
      pass(Range{first + part.begin, first + part.end});
    }
  }
}

}  // namespace

FlowLm::FlowLm(std::shared_ptr<const FlowLmWeights> weights, nn::Runner& runner, size_t streams)
    : weights_(std::move(weights)),
      runner_(runner),
      crew_(runner.team()),
      decoder_(*weights_, runner, {.rows = kPassRows, .streams = streams}) {
  SYRINX_CHECK(streams >= 1 && streams <= kMaxStreams, "{} streams", streams);
  const FlowLmWeights& w = *weights_;
  const auto prepare = [](nn::Plane& plane, size_t rows, size_t channels) {
    plane.prepare(rows, channels, kernels::Storage::kF32);
  };
  prepare(voice_, kPassRows, w.voice_width);
  prepare(text_, kPassRows, w.text_width());
  prepare(latent_, streams, w.latent);
  out_norm_.prepare(streams, w.shape.width, runner_.team().size());
  prepare(condition_, streams, w.config.condition);
  prepare(logit_, streams, 1);
  streams_.reserve(streams);
  for (const auto* matrix : {&w.input, &w.eos, &w.z_proj}) nn::reserve_linear(runner_, matrix->view, kMaxStreams);
}

void FlowLm::set_probe(Probe probe) {
  probe_ = std::move(probe);
  decoder_.set_probe(!probe_ ? nn::Decoder::Probe()
                             : [this](size_t layer, View<const float, 2> rows) { probe_("layer", layer, rows); });
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
  std::copy(weights_->bos_before_voice.begin(), weights_->bos_before_voice.end(), decoder_.input(1).data());
  append_rows("voice", 1, state);
}

// The first `rows` rows of the decoder's input become the next positions.
void FlowLm::append_rows(std::string_view stage, size_t rows, FlowLmState& state) {
  if (probe_) probe_(stage, 0, decoder_.input(rows));
  const nn::Decoder::Rows stream{.cache = &state, .count = rows};
  decoder_.begin(*weights_, {&stream, 1}, probe_ ? nn::Decoder::Output::kRows : nn::Decoder::Output::kNone);
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    decoder_.work(seat);
  });
  decoder_.end();
}

Status FlowLm::prefill_voice(View<const float, 2> latents, FlowLmState& state, const nn::BetweenJobs& between) {
  return prefill_rows(latents, false, state, between);
}

Status FlowLm::prefill_projected(View<const float, 2> projected, FlowLmState& state, const nn::BetweenJobs& between) {
  return prefill_rows(projected, true, state, between);
}

Status FlowLm::prefill_rows(View<const float, 2> voice, bool projected, FlowLmState& state,
                            const nn::BetweenJobs& between) {
  const size_t count = voice.extent(0), width = projected ? weights_->shape.width : weights_->voice_width;
  if (voice.extent(1) != width)
    return fail(Code::kInvalidArgument, "voice frames of {} numbers, the model takes {}", voice.extent(1), width);
  SYRINX_TRY_VOID(check_room(state, count + (needs_bos(state) ? 1 : 0)));
  if (needs_bos(state)) append_bos(state);
  in_passes(count, between, [&](Range some) {
    const size_t rows = some.end - some.begin;
    const View<float, 2> x = decoder_.input(rows);
    nn::copy_rows(View<const float, 2>(voice.row(some.begin), {rows, width}, {voice.stride(0), 1}),
                  projected ? x : rows_of(voice_, rows));
    if (!projected) nn::linear(runner_, weights_->voice_proj.view, rows_of(voice_, rows), {}, x);
    append_rows("voice", rows, state);
  });
  if (!projected) weights_->release_file();
  return {};
}

Status FlowLm::prefill_text(std::span<const int32_t> ids, FlowLmState& state, const nn::BetweenJobs& between) {
  const FlowLmWeights& w = *weights_;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= w.config.text_bins)
      return fail(Code::kInvalidArgument, "token {} of a model that knows {}; its tokenizer is another model's", id,
                  w.config.text_bins);
  }
  SYRINX_TRY_VOID(check_room(state, ids.size()));
  in_passes(ids.size(), between, [&](Range some) {
    const size_t rows = some.end - some.begin;
    const View<float, 2> x = decoder_.input(rows), embedded = w.config.text_rank > 0 ? rows_of(text_, rows) : x;
    for (size_t n = 0; n < rows; ++n) w.text_table.copy_row(static_cast<size_t>(ids[some.begin + n]), embedded.row(n));
    if (w.config.text_rank > 0) nn::linear(runner_, w.text_proj.view, embedded, {}, x);
    append_rows("text", rows, state);
  });
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
  streams_.clear();
  for (size_t n = 0; n < streams.size(); ++n) {
    const float* const latent = streams[n].latent != nullptr ? streams[n].latent : weights_->bos.data();
    std::copy_n(latent, weights_->latent, latent_.f32(n));
    FlowLmState& state = *streams[n].state;
    if (state.room() == 0) {
      state.full = true;
    } else {
      streams_.push_back({.cache = &state, .first = n});
    }
  }
  rows_ = streams.size();
  decoder_.begin(*weights_, streams_, nn::Decoder::Output::kRows);
}

void FlowLm::work_at_step(nn::Crew::Seat& seat) {
  const FlowLmWeights& w = *weights_;
  const View<float, 2> x = decoder_.input(rows_), condition = rows_of(condition_, rows_);
  const auto linear = [&](const nn::Part& part, const kernels::OwnedMatrix& matrix, View<const float, 2> from,
                          View<float, 2> to) { nn::stream_linear_part(runner_, part, matrix.view, from, {}, to); };
  seat.stage([&](const nn::Part& part) { linear(part, w.input, rows_of(latent_, rows_), x); });
  decoder_.work(seat);
  if (w.config.project_condition) {
    const nn::RowNorm::Work norm{.weights = &w.out_norm, .epsilon = w.shape.epsilon, .x = x};
    out_norm_.stage(seat, norm);
    seat.stage([&](const nn::Part& part) { linear(part, w.z_proj, out_norm_.rows(part, norm), condition); });
  } else {
    seat.stage([&](const nn::Part& part) {
      const Range own = part.split(rows_);
      const View<const float, 2> rows(x.data() + own.begin * x.stride(0), {own.end - own.begin, x.extent(1)},
                                      {x.stride(0), 1});
      kernels::layer_norm(rows, w.out_norm.affine(), w.shape.epsilon, rows_of(condition_, own.begin, own.end));
    });
  }
  seat.stage([&](const nn::Part& part) { linear(part, w.eos, condition, rows_of(logit_, rows_)); });
}

FlowLm::Steps FlowLm::end_step() {
  decoder_.end();
  return {rows_of(condition_, rows_), logit_.f32(), logit_.stride()};
}

}  // namespace syrinx::pocket
