#include "models/pocket_tts/flow_head.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/activation.h"
#include "nn/linear.h"
#include "nn/rows.h"

namespace syrinx::pocket {
using nn::rows_of;

namespace {

constexpr float kNormEpsilon = 1e-6f;
constexpr double kTimeEpsilon = 1e-5;

// y = W x + b in double, rows [out, in]: for the times, once at load.
std::vector<double> multiply(const RowTable& rows, const std::vector<float>& bias, const std::vector<double>& x) {
  std::vector<double> y(bias.begin(), bias.end());
  std::vector<float> row(x.size());
  for (size_t n = 0; n < y.size(); ++n) {
    rows.copy_row(n, row.data());
    for (size_t k = 0; k < x.size(); ++k) y[n] += static_cast<double>(row[k]) * x[k];
  }
  return y;
}

}  // namespace

std::vector<float> time_embedding(const TimeEmbedding& weights, float time) {
  std::vector<double> angles(2 * kTimeFrequencies);
  for (size_t i = 0; i < kTimeFrequencies; ++i) {
    const float angle = time * weights.freqs[i];
    angles[i] = std::cos(static_cast<double>(angle));
    angles[kTimeFrequencies + i] = std::sin(static_cast<double>(angle));
  }
  std::vector<double> z = multiply(weights.weight0, weights.bias0, angles);
  for (double& v : z) v /= 1.0 + std::exp(-v);
  z = multiply(weights.weight2, weights.bias2, z);
  // The variance is that about the mean, with n - 1, but the mean stays in the values.
  const double n = static_cast<double>(z.size());
  double mean = 0, squares = 0;
  for (const double v : z) mean += v / n;
  for (const double v : z) squares += (v - mean) * (v - mean);
  const double factor = 1.0 / std::sqrt(kTimeEpsilon + squares / std::max(n - 1.0, 1.0));
  std::vector<float> out(z.size());
  for (size_t i = 0; i < z.size(); ++i) out[i] = static_cast<float>(z[i] * weights.alpha[i] * factor);
  return out;
}

Result<FlowSchedule> make_schedule(const FlowLmWeights& weights, size_t decode_steps) {
  const std::vector<TimeEmbedding>& times = weights.head.times;
  if (times.empty()) return FlowSchedule{};
  const size_t least = weights.config.head == HeadType::kFlowMatching ? kMinFlowMatchingEvaluations : 1;
  if (decode_steps < least || decode_steps > kMaxEvaluations)
    return fail(Code::kInvalidArgument, "{} sampler steps a frame; this model takes {} to {}", decode_steps, least,
                kMaxEvaluations);
  FlowSchedule schedule{.evaluations = decode_steps, .time = {}};
  for (size_t i = 0; i < decode_steps; ++i) {
    const auto at = [&](size_t step) {
      return static_cast<float>(static_cast<double>(step) / static_cast<double>(decode_steps));
    };
    std::vector<float> sum = time_embedding(times[0], at(i));
    if (times.size() == 2) {
      const std::vector<float> end = time_embedding(times[1], at(i + 1));
      for (size_t k = 0; k < sum.size(); ++k) sum[k] = (sum[k] + end[k]) / 2.0f;
    }
    schedule.time.insert(schedule.time.end(), sum.begin(), sum.end());
  }
  weights.release_file();
  return schedule;
}

FlowHead::FlowHead(std::shared_ptr<const FlowLmWeights> weights, FlowSchedule schedule, nn::Runner& runner,
                   size_t streams)
    : weights_(std::move(weights)), schedule_(std::move(schedule)), runner_(runner), crew_(runner.team()) {
  const FlowHeadWeights& w = weights_->head;
  const size_t width = weights_->config.head_width, evaluations = schedule_.evaluations;
  SYRINX_CHECK(evaluations >= 1 && (!w.times.empty() || evaluations == 1), "{} evaluations", evaluations);
  SYRINX_CHECK(schedule_.time.size() == (w.times.empty() ? 0 : evaluations * width), "{} times of {}",
               schedule_.time.size(), evaluations);
  const auto prepare = [](nn::Plane& plane, size_t rows, size_t channels) {
    plane.prepare(rows, channels, kernels::Storage::kF32);
  };
  prepare(read_, streams, weights_->config.condition);
  for (nn::Plane* plane : {&condition_, &h_, &inner_, &hidden_}) prepare(*plane, streams, width);
  for (nn::Plane* plane : {&x_, &velocity_}) prepare(*plane, streams, weights_->latent);
  prepare(times_, streams * evaluations, width);
  prepare(modulation_, streams * evaluations, w.modulation.view.columns);
  for (const auto* matrix : {&w.condition, &w.input, &w.modulation, &w.output})
    nn::reserve_linear(runner, matrix->view, times_.rows());
  for (const FlowBlock& block : w.blocks) {
    for (const auto* matrix : {&block.linear0, &block.linear2}) nn::reserve_linear(runner, matrix->view, h_.rows());
  }
}

void FlowHead::sample(std::span<const Stream> streams) {
  const size_t n = weights_->latent, rows = streams.size();
  SYRINX_CHECK(rows >= 1 && rows <= x_.rows(), "{} streams, made for {}", rows, x_.rows());
  for (size_t b = 0; b < rows; ++b) {
    const Stream& stream = streams[b];
    SYRINX_CHECK(stream.noise.size() == n && stream.latent.size() == n && stream.hidden.size() == read_.channels(),
                 "noise {} latent {} of {}, hidden {} of {}", stream.noise.size(), stream.latent.size(), n,
                 stream.hidden.size(), read_.channels());
    std::copy(stream.hidden.begin(), stream.hidden.end(), read_.f32(b));
    std::copy(stream.noise.begin(), stream.noise.end(), x_.f32(b));
  }
  const float parts = static_cast<float>(schedule_.evaluations);
  runner_.team().run([&](int member) {
    nn::Crew::Seat seat = crew_.everyone(member);
    modulate(seat, rows);
    for (size_t i = 0; i < schedule_.evaluations; ++i) {
      run_network(seat, rows, i);
      seat.stage([&](const nn::Part& part) {
        const Range own = part.split(rows);
        for (size_t b = own.begin; b < own.end; ++b) {
          const float* const v = velocity_.f32(b);
          float* const x = x_.f32(b);
          if (weights_->config.head == HeadType::kDrifting) {
            std::copy_n(v, n, x);
          } else {
            for (size_t k = 0; k < n; ++k) x[k] += v[k] / parts;
          }
        }
      });
    }
  });
  for (size_t b = 0; b < rows; ++b) std::copy_n(x_.f32(b), n, streams[b].latent.data());
}

nn::Share FlowHead::linear(const nn::Part& part, const kernels::OwnedMatrix& matrix, View<const float, 2> x,
                           View<float, 2> y) {
  return nn::stream_linear_part(runner_, part, matrix.view, x, {}, y);
}

// All modulations of a frame, in one pass over their matrix: none depends on x.
void FlowHead::modulate(nn::Crew::Seat& seat, size_t rows) {
  using nn::Part;
  const FlowHeadWeights& w = weights_->head;
  const size_t width = weights_->config.head_width, evaluations = schedule_.evaluations;
  seat.stage([&](const Part& part) { linear(part, w.condition, rows_of(read_, rows), rows_of(condition_, rows)); });
  probe(seat, "condition", 0, condition_);
  seat.stage([&](const Part& part) {
    const Range own = part.split(rows * evaluations);
    for (size_t n = own.begin; n < own.end; ++n) {
      float* const row = times_.f32(n);
      std::copy_n(condition_.f32(n / evaluations), width, row);
      if (!schedule_.time.empty()) {
        for (size_t k = 0; k < width; ++k) row[k] += schedule_.time[n % evaluations * width + k];
      }
      kernels::silu({row, width}, {row, width});
    }
  });
  seat.stage([&](const Part& part) {
    linear(part, w.modulation, rows_of(times_, rows * evaluations), rows_of(modulation_, rows * evaluations));
  });
}

// velocity_ = v(x_), with the modulations of one evaluation.
void FlowHead::run_network(nn::Crew::Seat& seat, size_t rows, size_t evaluation) {
  using nn::Part;
  const FlowHeadWeights& w = weights_->head;
  const size_t width = weights_->config.head_width;
  const auto modulation = [&](size_t row) { return modulation_.f32(row * schedule_.evaluations + evaluation); };
  seat.stage([&](const Part& part) { linear(part, w.input, rows_of(x_, rows), rows_of(h_, rows)); });
  probe(seat, "input", 0, h_);
  for (size_t i = 0; i < w.blocks.size(); ++i) {
    const FlowBlock& block = w.blocks[i];
    seat.stage([&](const Part& part) {
      const Range own = part.split(rows);
      kernels::layer_norm(rows_of(h_, own.begin, own.end), block.norm.affine(), kNormEpsilon,
                          rows_of(inner_, own.begin, own.end));
      for (size_t n = own.begin; n < own.end; ++n) {
        const float *shift = modulation(n) + i * 3 * width, *scale = shift + width;
        float* const inner = inner_.f32(n);
        for (size_t k = 0; k < width; ++k) inner[k] = inner[k] * (1.0f + scale[k]) + shift[k];
      }
    });
    seat.stage([&](const Part& part) {
      const nn::Share own = linear(part, block.linear0, rows_of(inner_, rows), rows_of(hidden_, rows));
      for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
        const std::span<float> columns(hidden_.f32(n) + own.columns.begin, own.columns.end - own.columns.begin);
        kernels::silu(columns, columns);
      }
    });
    seat.stage([&](const Part& part) {
      const nn::Share own = linear(part, block.linear2, rows_of(hidden_, rows), rows_of(inner_, rows));
      for (size_t n = own.rows.begin; n < own.rows.end; ++n) {
        const float* const gate = modulation(n) + i * 3 * width + 2 * width;
        float *const h = h_.f32(n), *const inner = inner_.f32(n);
        for (size_t k = own.columns.begin; k < std::min(own.columns.end, width); ++k) h[k] += gate[k] * inner[k];
        // The product fills whole panels: a value that is not finite must not outlive its frame in the padding.
        if (own.columns.end > width) std::fill(inner + width, inner + inner_.stride(), 0.0f);
      }
    });
    probe(seat, "block", i, h_);
  }
  seat.stage([&](const Part& part) {
    const Range own = part.split(rows);
    for (size_t n = own.begin; n < own.end; ++n) {
      const float *shift = modulation(n) + w.blocks.size() * 3 * width, *scale = shift + width;
      kernels::adaptive_layer_norm(rows_of(h_, n, n + 1), scale, shift, kNormEpsilon, rows_of(inner_, n, n + 1));
    }
  });
  seat.stage([&](const Part& part) { linear(part, w.output, rows_of(inner_, rows), rows_of(velocity_, rows)); });
  probe(seat, "velocity", 0, velocity_);
}

// Others may read meanwhile what is shown, but write it behind the next stage only.
void FlowHead::probe(nn::Crew::Seat& seat, std::string_view stage, size_t index, const nn::Plane& plane) const {
  if (!probe_) return;
  seat.together([&](const nn::Part& part) {
    if (part.rank == 0) probe_(stage, index, {plane.f32(), plane.channels()});
  });
}

}  // namespace syrinx::pocket
