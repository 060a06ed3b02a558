#include "models/transducer/encoder_layers.h"

#include <algorithm>
#include <utility>

#include "kernels/activation.h"
#include "kernels/glu.h"
#include "kernels/layer_norm.h"
#include "nn/linear.h"

namespace syrinx::transducer {
namespace {

constexpr float kEpsilon = 1e-5f;

}  // namespace

EncoderLayers::EncoderLayers(std::shared_ptr<const EncoderWeights> weights, nn::Runner& runner, bool streams)
    : runner_(runner), crew_(runner.team()), weights_(std::move(weights)), streams_(streams) {}

void EncoderLayers::prepare(size_t rows) {
  const EncoderConfig& c = config();
  const auto make = [&](nn::Plane& plane, size_t channels) {
    if (plane.rows() < rows) plane.prepare(rows, channels, kernels::Storage::kF32);
  };
  for (nn::Plane* plane : {&x_, &attended_, &gated_, &mixed_, &normed_}) make(*plane, c.width);
  make(qkv_, 3 * c.width);
  make(hidden_, std::max({c.hidden, 2 * c.width, c.prompt.hidden}));
  if (c.prompt.count > 0) nn::reserve_linear(runner_, weights_->prompt.first.view, rows);
  const EncoderLayer& first = weights_->layers.front();
  for (const kernels::OwnedMatrix* matrix : {&first.linear1, &first.linear2, &first.qkv, &first.out})
    nn::reserve_linear(runner_, matrix->view, rows);
}

void EncoderLayers::run(size_t rows, const BetweenJobs& between) {
  rows_ = rows;
  if (probe_) probe_("pre", rows_of(x_));
  const size_t layers = weights_->layers.size(), at_once = between ? 1 : layers;
  for (size_t first = 0; first < layers; first += at_once) {
    const bool tells = first + at_once == layers && config().prompt.count > 0 && rows_ > 0;
    const bool is_done = between && !probe_ && run_layer_in_jobs(first, between);
    if (is_done && !tells) continue;
    runner_.team().run([&](int member) {
      nn::Crew::Seat seat = crew_.everyone(member);
      for (size_t i = first; !is_done && i < first + at_once; ++i) run_layer(seat, i);
      if (tells) tell_prompts(seat);
    });
    if (between) between();
  }
}

nn::Share EncoderLayers::linear(const nn::Part& part, const kernels::OwnedMatrix& matrix, nn::Plane& x,
                                View<const float, 2> addend, nn::Plane& y) {
  const PackedMatrix& m = matrix.view;
  const View<const float, 2> from(x.f32(), {rows_, m.channels}, {x.stride(), 1});
  const View<float, 2> to(y.f32(), {rows_, m.columns}, {y.stride(), 1});
  return streams_ ? nn::stream_linear_part(runner_, part, m, from, addend, to)
                  : nn::linear_part(runner_, part, m, from, addend, to);
}

void EncoderLayers::norm_rows(nn::Crew::Seat& seat, const NormWeights& norm, nn::Plane& from, nn::Plane& to) {
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(rows_);
    kernels::layer_norm(rows_of(from, own), norm.affine(), kEpsilon, rows_of(to, own));
  });
}

void EncoderLayers::feed_forward(nn::Crew::Seat& seat, const NormWeights& norm, const kernels::OwnedMatrix& first,
                                 const kernels::OwnedMatrix& second) {
  norm_rows(seat, norm, x_, normed_);
  seat.stage([&](const nn::Part& part) {
    const nn::Share own = linear(part, first, normed_, {}, hidden_);
    for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
      const std::span<float> columns(hidden_.f32(n) + own.columns.begin, own.columns.end - own.columns.begin);
      kernels::silu(columns, columns);
    }
  });
  seat.stage([&](const nn::Part& part) { linear(part, second, hidden_, rows_of(x_), x_); });
}

void EncoderLayers::tell_prompts(nn::Crew::Seat& seat) {
  const PromptWeights& prompt = weights_->prompt;
  seat.stage([](const nn::Part&) {});  // the others' rows of x
  seat.stage([&](const nn::Part& part) {
    const nn::Share own = linear(part, prompt.first, x_, {}, hidden_);
    const size_t hidden = config().prompt.hidden;
    const size_t end = std::min(own.columns.end, hidden);  // a share ends with a panel, behind the last column
    for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
      float* const row = hidden_.f32(n);
      const float* const told = prompt.languages.data() + prompt_of(n) * hidden;
      for (size_t i = own.columns.begin; i < end; ++i) row[i] = std::max(row[i] + told[i], 0.0f);
    }
  });
  seat.stage([&](const nn::Part& part) { linear(part, prompt.second, hidden_, {}, x_); });
}

void EncoderLayers::run_layer(nn::Crew::Seat& seat, size_t index) {
  run_before_attention(seat, index);
  seat.stage([&](const nn::Part& part) { attend(part, index); });
  run_behind_attention(seat, index);
}

void EncoderLayers::run_before_attention(nn::Crew::Seat& seat, size_t index) {
  const EncoderLayer& layer = weights_->layers[index];
  feed_forward(seat, layer.norm_feed_forward1, layer.linear1, layer.linear2);
  show(seat, index, ".ff1");
  norm_rows(seat, layer.norm_attention, x_, normed_);
  seat.stage([&](const nn::Part& part) { linear(part, layer.qkv, normed_, {}, qkv_); });
}

void EncoderLayers::run_behind_attention(nn::Crew::Seat& seat, size_t index) {
  const EncoderLayer& layer = weights_->layers[index];
  seat.stage([&](const nn::Part& part) { linear(part, layer.out, attended_, rows_of(x_), x_); });
  show(seat, index, ".att");
  norm_rows(seat, layer.norm_convolution, x_, normed_);
  seat.stage([&](const nn::Part& part) { linear(part, layer.pointwise1, normed_, {}, hidden_); });
  seat.stage([&](const nn::Part& part) {
    const Range own = part.split(rows_);
    for (size_t row = own.begin; row < own.end; ++row)
      kernels::glu({hidden_.f32(row), {1, 2 * config().width}}, {gated_row(row, index), {1, config().width}});
  });
  seat.stage([&](const nn::Part& part) { convolve(part, index); });
  seat.stage([&](const nn::Part& part) { linear(part, layer.pointwise2, mixed_, rows_of(x_), x_); });
  show(seat, index, ".conv");
  feed_forward(seat, layer.norm_feed_forward2, layer.linear3, layer.linear4);
  norm_rows(seat, layer.norm_out, x_, x_);
  show(seat, index, "");
}

void EncoderLayers::finish_convolution(const EncoderLayer& layer, View<float, 2> rows) const {
  kernels::layer_norm(rows, layer.convolution_norm.affine(), kEpsilon, rows);
  for (size_t t = 0; t < rows.extent(0); ++t) {
    const std::span<float> row(rows.row(t), rows.extent(1));
    kernels::silu(row, row);
  }
}

// The others read x meanwhile; it is written again behind the next stage only.
void EncoderLayers::show(nn::Crew::Seat& seat, size_t layer, const char* what) {
  seat.together([&](const nn::Part& part) {
    if (probe_ && part.rank == 0 && (layer == 0 || *what == '\0'))
      probe_(fmt::format("layer{}{}", layer, what), rows_of(x_));
  });
}

}  // namespace syrinx::transducer
