#include "models/transducer/subsampling.h"

#include <algorithm>
#include <cstring>

#include "kernels/activation.h"
#include "kernels/depthwise_rows.h"
#include "nn/linear.h"

namespace syrinx::transducer {
namespace {

constexpr size_t kTaps = 3;
// Rows that a stage may hold besides what comes in: a kernel less one.
constexpr size_t kHeld = kTaps;

size_t pad_of(const EncoderConfig& config) { return config.causal_downsampling ? 2 : 1; }
// At most, for so many rows that come in; the last piece gives one more.
size_t outputs_of(size_t rows) { return rows / 2 + 2; }

}  // namespace

SubsamplingState::SubsamplingState(const EncoderConfig& config, size_t mels) {
  size_t rows = mels, columns = config.mels;
  for (size_t i = 0; i < config.stages(); ++i) {
    Stage stage;
    stage.width = i == 0 ? config.mels : columns * config.padded_channels();
    stage.capacity = rows + kHeld;
    stage.rows = Buffer<float>(stage.capacity * stage.width);
    stages_.push_back(std::move(stage));
    rows = outputs_of(rows);
    columns = config.halved(columns);
  }
}

void SubsamplingState::reset() {
  for (Stage& stage : stages_) stage.count = stage.first = stage.produced = 0;
}

void SubsamplingState::copy_from(const SubsamplingState& other) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& from = other.stages_[i];
    std::copy(from.rows.begin(), from.rows.end(), stages_[i].rows.begin());
    stages_[i].count = from.count;
    stages_[i].first = from.first;
    stages_[i].produced = from.produced;
  }
}

size_t SubsamplingState::size_bytes() const {
  size_t bytes = 0;
  for (const Stage& stage : stages_) bytes += stage.rows.size() * sizeof(float);
  return bytes;
}

Subsampler::Subsampler(const EncoderWeights& weights, nn::Runner& runner, size_t pieces, size_t mels, bool streams)
    : w_(weights), runner_(runner), streams_(streams), counts_(pieces) {
  const EncoderConfig& c = w_.config;
  columns_.push_back(c.mels);
  size_t rows = mels, most = 0;
  for (size_t i = 0; i < c.stages(); ++i) {
    columns_.push_back(c.halved(columns_.back()));
    rows = outputs_of(rows);
    most = std::max(most, rows * columns_.back());
  }
  convolved_.prepare(pieces * most, c.striding ? 9 * c.padded_channels() : c.channels, kernels::Storage::kF32);
  mixed_.prepare(pieces * most, c.channels, kernels::Storage::kF32);
  for (const SubsamplingStage& stage : w_.stages)
    if (stage.pointwise.view.columns > 0) nn::reserve_linear(runner_, stage.pointwise.view, pieces * most);
  nn::reserve_linear(runner_, w_.subsampled.view, pieces * rows);
}

// Rows that the stage can give now: each reads three rows from twice its number less the padding on; behind the last
// row of the sound there are zeros.
size_t Subsampler::ready(const SubsamplingState::Stage& state, bool last) const {
  const size_t have = state.first + state.count, pad = pad_of(w_.config);
  if (last) return have == 0 ? 0 : w_.config.halved(have) - state.produced;
  const size_t whole = have + pad < kTaps ? 0 : (have + pad - kTaps) / 2 + 1;
  return whole > state.produced ? whole - state.produced : 0;
}

// One row of a full convolution's input for each output column: three by three positions, zeros outside.
void Subsampler::gather(const SubsamplingState::Stage& state, ptrdiff_t row, size_t input_columns, size_t columns,
                        float* to) const {
  const size_t channels = w_.config.padded_channels();
  const auto pad = static_cast<ptrdiff_t>(pad_of(w_.config));
  for (size_t f = 0; f < columns; ++f) {
    for (size_t j = 0; j < kTaps; ++j) {
      for (size_t k = 0; k < kTaps; ++k, to += channels) {
        const ptrdiff_t t = row + static_cast<ptrdiff_t>(j), column = static_cast<ptrdiff_t>(2 * f + k) - pad;
        const bool inside = t >= 0 && t < static_cast<ptrdiff_t>(state.count) && column >= 0 &&
                            column < static_cast<ptrdiff_t>(input_columns);
        if (inside) {
          std::copy_n(state.rows.data() + static_cast<size_t>(t) * state.width + static_cast<size_t>(column) * channels,
                      channels, to);
        } else {
          std::fill_n(to, channels, 0.0f);
        }
      }
    }
  }
}

// The next `rows` outputs of a stream's stage into convolved_, from row `at` (of images) on.
void Subsampler::convolve(size_t stage, const SubsamplingState::Stage& state, size_t rows, size_t at) {
  const EncoderConfig& c = w_.config;
  const size_t columns = columns_[stage + 1], channels = c.padded_channels(), pad = pad_of(c);
  if (c.striding && stage > 0) {
    runner_.split(rows, [&](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t) {
        const auto row = static_cast<ptrdiff_t>(2 * (state.produced + t)) - static_cast<ptrdiff_t>(pad + state.first);
        gather(state, row, columns_[stage], columns, convolved_.f32((at + t) * columns));
      }
    });
    return;
  }
  kernels::HalvingConv conv;
  conv.weight = w_.stages[stage].weight.data();
  conv.bias = w_.stages[stage].bias.data();
  conv.channels = channels;
  conv.input_channels = stage == 0 ? 1 : channels;
  conv.input_columns = columns_[stage];
  conv.columns = columns;
  // Output row 0 of this call reads from local row -pad on; the first row held is the first that it reads, once the
  // padding before the sound is behind.
  conv.pad = pad + state.first - 2 * state.produced;
  conv.pad_columns = pad;
  conv.relu = stage == 0;
  const View<const float, 2> in(state.rows.data(), {state.count, state.width});
  nn::Plane& to = stage == 0 ? mixed_ : convolved_;
  const View<float, 2> out(to.f32(at * columns), {rows, columns * channels}, {columns * to.stride(), 1});
  runner_.split(rows, [&](size_t begin, size_t end) { kernels::halving_conv(conv, in, begin, end, out); });
}

// Convolves what a stream's stage has, and forgets what no later output reads.
size_t Subsampler::feed(size_t stage, SubsamplingState::Stage& state, bool last, size_t at) {
  const size_t rows = ready(state, last);
  if (rows > 0) convolve(stage, state, rows, at);
  state.produced += rows;
  const size_t pad = pad_of(w_.config), next = 2 * state.produced < pad ? 0 : 2 * state.produced - pad;
  const size_t drop = std::min(next - std::min(next, state.first), state.count);
  std::memmove(state.rows.data(), state.rows.data() + drop * state.width,
               (state.count - drop) * state.width * sizeof(float));
  state.first += drop;
  state.count -= drop;
  return rows;
}

size_t Subsampler::run(std::span<const Piece> pieces, std::span<size_t> rows, View<float, 2> out) {
  const EncoderConfig& c = w_.config;
  SYRINX_CHECK(pieces.size() <= counts_.size() && rows.size() >= pieces.size(), "{} pieces, made for {}", pieces.size(),
               counts_.size());
  size_t total = 0;
  for (size_t stage = 0; stage < w_.stages.size(); ++stage) {
    const size_t width = stage == 0 ? c.mels : columns_[stage] * c.padded_channels();
    size_t read = 0;
    total = 0;
    for (size_t n = 0; n < pieces.size(); ++n) {
      SubsamplingState::Stage& state = pieces[n].state->stages_[stage];
      const size_t more = stage == 0 ? pieces[n].mels.extent(0) : counts_[n];
      SYRINX_CHECK(state.count + more <= state.capacity, "{} rows and {} in room for {}", state.count, more,
                   state.capacity);
      float* to = state.rows.data() + state.count * state.width;
      for (size_t t = 0; t < more; ++t, to += width)
        std::copy_n(stage == 0 ? pieces[n].mels.row(t) : mixed_.f32(read + t * columns_[stage]), width, to);
      read += more * columns_[stage];
      state.count += more;
    }
    for (size_t n = 0; n < pieces.size(); ++n) {
      counts_[n] = feed(stage, pieces[n].state->stages_[stage], pieces[n].last, total);
      total += counts_[n];
    }
    if (stage == 0 || total == 0) continue;
    const size_t positions = total * columns_[stage + 1];
    const PackedMatrix& matrix = w_.stages[stage].pointwise.view;
    const View<const float, 2> in(convolved_.f32(), {positions, matrix.channels}, {convolved_.stride(), 1});
    const View<float, 2> mixed(mixed_.f32(), {positions, c.channels}, {mixed_.stride(), 1});
    multiply(matrix, in, columns_[stage + 1], mixed);
    runner_.split(positions, [&](size_t begin, size_t end) {
      const std::span<float> own(mixed_.f32(begin), (end - begin) * mixed_.stride());
      kernels::leaky_relu(own, 0.0f, own);
    });
  }
  std::copy_n(counts_.begin(), pieces.size(), rows.begin());
  if (total > 0) {
    const View<const float, 2> in(mixed_.f32(), {total, w_.subsampled.view.channels},
                                  {columns_.back() * mixed_.stride(), 1});
    multiply(w_.subsampled.view, in, 1, {out.data(), {total, c.width}, {out.stride(0), 1}});
  }
  return total;
}

// y = x W + b.  A single row would sum in another order than several, so where a frame has but one, streams go row by
// row.
void Subsampler::multiply(const PackedMatrix& matrix, View<const float, 2> x, size_t frame_rows, View<float, 2> y) {
  if (!streams_ || frame_rows > 1) {
    nn::linear(runner_, matrix, x, {}, y);
    return;
  }
  nn::reserve_linear(runner_, matrix, x.extent(0));
  const int size = runner_.team().size();
  runner_.team().run([&](int member) {
    nn::stream_linear_part(runner_, {.member = member, .rank = member, .size = size}, matrix, x, {}, y);
  });
}

}  // namespace syrinx::transducer
