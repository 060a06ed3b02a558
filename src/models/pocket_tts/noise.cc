// The recipes are those of PyTorch 2.15: aten/src/ATen/core/DistributionsHelper.h (uniform and normal numbers),
// aten/src/ATen/native/cpu/DistributionTemplates.h (normal_fill) and torch/nn/init.py (trunc_normal_).
#include "models/pocket_tts/noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace syrinx::pocket {
namespace {

constexpr size_t kFill = 16;              // normal_fill works on groups of so many
constexpr double kNormalFromShare = 0.3;  // trunc_normal_ rejects normal numbers above this share, else uniform ones
constexpr float kMaxTemperature = 100.0f;

}  // namespace

float TorchGenerator::next_float() {
  return static_cast<float>(static_cast<uint32_t>(engine_()) & 0xFFFFFF) * 0x1p-24f;
}

double TorchGenerator::next_double() {
  const uint64_t high = engine_(), low = engine_();
  return static_cast<double>((high << 32 | low) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

void TorchGenerator::fill_uniform(std::span<float> out, float low, float high) {
  for (float& value : out) value = next_float() * (high - low) + low;
}

double TorchGenerator::next_normal() {
  if (kept_) {
    const double value = *kept_;
    kept_.reset();
    return value;
  }
  const double angle = 2 * std::numbers::pi * next_double();
  const double radius = std::sqrt(-2 * std::log1p(-next_double()));
  kept_ = radius * std::sin(angle);
  return radius * std::cos(angle);
}

// Sixteen uniform numbers in place: the first eight become radii, the last eight angles.
void TorchGenerator::normal_sixteen(float* out, float deviation) {
  for (size_t j = 0; j < kFill / 2; ++j) {
    const float radius = std::sqrt(-2.0f * std::log(1.0f - out[j]));
    const float angle = static_cast<float>(2 * std::numbers::pi * static_cast<double>(out[j + kFill / 2]));
    out[j] = radius * std::cos(angle) * deviation;
    out[j + kFill / 2] = radius * std::sin(angle) * deviation;
  }
}

void TorchGenerator::fill_normal(std::span<float> out, double deviation) {
  if (out.size() < kFill) {
    for (float& value : out) value = static_cast<float>(next_normal() * deviation);
    return;
  }
  const float scale = static_cast<float>(deviation);
  for (float& value : out) value = next_float();
  for (size_t i = 0; i + kFill <= out.size(); i += kFill) normal_sixteen(&out[i], scale);
  if (out.size() % kFill == 0) return;
  // A rest is filled with the last sixteen, drawn anew.
  const std::span<float> last = out.last(kFill);
  for (float& value : last) value = next_float();
  normal_sixteen(last.data(), scale);
}

Result<Noise> Noise::create(Generator generator, uint64_t seed, size_t width, const NoiseSettings& settings) {
  if (!(settings.temperature >= 0 && settings.temperature <= kMaxTemperature))
    return fail(Code::kInvalidArgument, "a temperature of {} is not between 0 and {}", settings.temperature,
                kMaxTemperature);
  if (settings.clamp && !(*settings.clamp > 0 && std::isfinite(*settings.clamp)))
    return fail(Code::kInvalidArgument, "a noise clamp of {} is not above 0; leave it out for none", *settings.clamp);
  return Noise(generator, seed, width, settings);
}

Noise::Noise(Generator generator, uint64_t seed, size_t width, const NoiseSettings& settings)
    : source_(Rng(seed)),
      deviation_(std::sqrt(static_cast<double>(settings.temperature))),
      clamp_(settings.clamp),
      candidates_(width),
      chances_(width),
      pending_(width) {
  if (generator == Generator::kTorch) source_ = TorchGenerator(seed);
}

void Noise::draw_normal(std::span<float> out) {
  if (auto* const torch = std::get_if<TorchGenerator>(&source_)) return torch->fill_normal(out, deviation_);
  std::get<Rng>(source_).fill_normal(out);
  for (float& value : out) value *= static_cast<float>(deviation_);
}

void Noise::draw_uniform(std::span<float> out, float low, float high) {
  if (auto* const torch = std::get_if<TorchGenerator>(&source_)) return torch->fill_uniform(out, low, high);
  std::get<Rng>(source_).fill_uniform(out);
  for (float& value : out) value = value * (high - low) + low;
}

void Noise::fill(std::span<float> out) {
  SYRINX_CHECK(out.size() == pending_.size(), "{} numbers of {}", out.size(), pending_.size());
  if (deviation_ == 0) {
    std::ranges::fill(out, 0.0f);
    return;
  }
  if (!clamp_) return draw_normal(out);
  // How much of the normal distribution the limits hold.
  const double share = std::erf(static_cast<double>(*clamp_) / deviation_ / std::numbers::sqrt2);
  share > kNormalFromShare ? fill_by_normal(out) : fill_by_uniform(out);
}

// Whole blocks of normal numbers, each replacing what is still outside; at least three of ten stay each time.
void Noise::fill_by_normal(std::span<float> out) {
  const auto outside = [&](float value) { return value < -*clamp_ || value > *clamp_; };
  draw_normal(out);
  while (std::any_of(out.begin(), out.end(), outside)) {
    draw_normal(candidates_);
    for (size_t i = 0; i < out.size(); ++i)
      if (outside(out[i])) out[i] = candidates_[i];
  }
}

// Whole blocks of uniform numbers, each kept with the density at its place; more than nine of ten are.
void Noise::fill_by_uniform(std::span<float> out) {
  const float deviation = static_cast<float>(deviation_);
  std::ranges::fill(pending_, uint8_t{1});
  while (std::ranges::find(pending_, 1) != pending_.end()) {
    draw_uniform(candidates_, -*clamp_, *clamp_);
    draw_uniform(chances_, 0, 1);
    for (size_t i = 0; i < out.size(); ++i) {
      if (pending_[i] == 0) continue;
      out[i] = candidates_[i];
      const float z = candidates_[i] / deviation;
      pending_[i] = std::log(chances_[i]) > -0.5f * (z * z) ? 1 : 0;
    }
  }
}

}  // namespace syrinx::pocket
