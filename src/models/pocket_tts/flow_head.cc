#include "models/pocket_tts/flow_head.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/activation.h"
#include "nn/linear.h"

namespace syrinx::pocket {
namespace {

constexpr float kNormEpsilon = 1e-6f;
constexpr double kTimeEpsilon = 1e-5;

// y = W x + b in double, rows [out, in]: for the times, once at load.
std::vector<double> multiply(const std::vector<float>& rows, const std::vector<float>& bias,
                             const std::vector<double>& x) {
  std::vector<double> y(bias.begin(), bias.end());
  for (size_t n = 0; n < y.size(); ++n)
    for (size_t k = 0; k < x.size(); ++k) y[n] += static_cast<double>(rows[n * x.size() + k]) * x[k];
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
  return schedule;
}

FlowHead::FlowHead(std::shared_ptr<const FlowLmWeights> weights, FlowSchedule schedule, nn::Runner& runner)
    : weights_(std::move(weights)), schedule_(std::move(schedule)), runner_(runner) {
  const FlowHeadWeights& w = weights_->head;
  const size_t width = weights_->config.head_width;
  SYRINX_CHECK(schedule_.evaluations >= 1 && (!w.times.empty() || schedule_.evaluations == 1), "{} evaluations",
               schedule_.evaluations);
  SYRINX_CHECK(schedule_.time.size() == (w.times.empty() ? 0 : schedule_.evaluations * width), "{} times of {}",
               schedule_.time.size(), schedule_.evaluations);
  for (nn::Plane* plane : {&condition_, &h_, &inner_, &hidden_}) plane->prepare(1, width, kernels::Storage::kF32);
  for (nn::Plane* plane : {&x_, &velocity_}) plane->prepare(1, weights_->latent, kernels::Storage::kF32);
  times_.prepare(schedule_.evaluations, width, kernels::Storage::kF32);
  modulation_.prepare(schedule_.evaluations, w.modulation.view.columns, kernels::Storage::kF32);
  nn::reserve_linear(runner_, w.modulation.view, schedule_.evaluations);
  for (const auto* matrix : {&w.condition, &w.input, &w.output}) nn::reserve_linear(runner_, matrix->view, 1);
  for (const FlowBlock& block : w.blocks) nn::reserve_linear(runner_, block.linear0.view, 1);
}

void FlowHead::sample(View<const float, 2> hidden, std::span<const float> noise, std::span<float> latent) {
  const size_t n = weights_->latent;
  SYRINX_CHECK(noise.size() == n && latent.size() == n, "noise {} latent {} of {}", noise.size(), latent.size(), n);
  modulate(hidden);
  float* const x = x_.f32();
  std::copy(noise.begin(), noise.end(), x);
  const float parts = static_cast<float>(schedule_.evaluations);
  for (size_t i = 0; i < schedule_.evaluations; ++i) {
    run_network(i);
    const float* const v = velocity_.f32();
    if (weights_->config.head == HeadType::kDrifting) {
      std::copy_n(v, n, x);
    } else {
      for (size_t k = 0; k < n; ++k) x[k] += v[k] / parts;
    }
  }
  std::copy_n(x, n, latent.data());
}

// All modulations of a frame, in one pass over their matrix: none depends on x.
void FlowHead::modulate(View<const float, 2> hidden) {
  const FlowHeadWeights& w = weights_->head;
  const size_t width = weights_->config.head_width;
  nn::linear(runner_, w.condition.view, hidden, {}, condition_.view());
  probe("condition", 0, condition_);
  for (size_t i = 0; i < schedule_.evaluations; ++i) {
    float* const row = times_.f32(i);
    std::copy_n(condition_.f32(), width, row);
    if (!schedule_.time.empty()) {
      for (size_t k = 0; k < width; ++k) row[k] += schedule_.time[i * width + k];
    }
    kernels::silu({row, width}, {row, width});
  }
  nn::linear(runner_, w.modulation.view, times_.view(), {}, modulation_.view());
}

// velocity_ = v(x_), with the modulations of one evaluation.
void FlowHead::run_network(size_t evaluation) {
  const FlowHeadWeights& w = weights_->head;
  const size_t width = weights_->config.head_width;
  const float* modulation = modulation_.f32(evaluation);
  float* const h = h_.f32();
  nn::linear(runner_, w.input.view, x_.view(), {}, h_.view());
  probe("input", 0, h_);
  for (size_t i = 0; i < w.blocks.size(); ++i, modulation += 3 * width) {
    const FlowBlock& block = w.blocks[i];
    const float *shift = modulation, *scale = modulation + width, *gate = modulation + 2 * width;
    float* const inner = inner_.f32();
    kernels::layer_norm(h_.view(), block.norm.affine(), kNormEpsilon, inner_.view());
    for (size_t k = 0; k < width; ++k) inner[k] = inner[k] * (1.0f + scale[k]) + shift[k];
    nn::linear(runner_, block.linear0.view, inner_.view(), {}, hidden_.view());
    kernels::silu({hidden_.f32(), width}, {hidden_.f32(), width});
    nn::linear(runner_, block.linear2.view, hidden_.view(), {}, inner_.view());
    for (size_t k = 0; k < width; ++k) h[k] += gate[k] * inner[k];
    // The product fills whole panels: a value that is not finite must not outlive its frame in the padding.
    std::fill(inner + width, inner + inner_.stride(), 0.0f);
    probe("block", i, h_);
  }
  const float *shift = modulation, *scale = modulation + width;
  kernels::adaptive_layer_norm(h_.view(), scale, shift, kNormEpsilon, inner_.view());
  nn::linear(runner_, w.output.view, inner_.view(), {}, velocity_.view());
  probe("velocity", 0, velocity_);
}

void FlowHead::probe(std::string_view stage, size_t index, const nn::Plane& row) const {
  if (probe_) probe_(stage, index, {row.f32(), row.channels()});
}

}  // namespace syrinx::pocket
