#include "models/kokoro/source.h"

#include <cmath>
#include <numbers>

#include "base/rng.h"
#include "kernels/vector_math.h"
#include "models/kokoro/weights.h"

namespace syrinx::kokoro {
namespace {

constexpr size_t kHop = 300;            // samples of one F0 value: 80 Hz to 24 kHz
constexpr size_t kFramesAtOnce = 1024;  // of one harmonic
constexpr size_t kNoiseAtOnce = 16384;  // samples
constexpr float kAmplitude = 0.1f, kVoicedHz = 10.0f, kVoicedNoise = 0.003f;

double wrap(double cycles) { return cycles - std::floor(cycles); }

// Phase in radians, within one turn of zero, of samples [0, kHop) of frame i.  Sample s lies between the centres of two
// frames: the reference interpolates linearly between the phases there, and holds the first and the last.
// `at` is the phase in cycles at the centre of frame i; `before` and `after` are the steps from and to the neighbours.
void frame_phase(double at, double before, double after, float* phase) {
  for (size_t s = 0; s < kHop; ++s) {
    const double away = (static_cast<double>(s) + 0.5) / kHop - 0.5;  // frames from the centre
    const double cycles = at + away * (away < 0.0 ? before : after);
    phase[s] = static_cast<float>((wrap(cycles + 0.5) - 0.5) * 2.0 * std::numbers::pi);
  }
}

}  // namespace

void Source::run(const float* f0, size_t stride, size_t count, const float* mix, const SourceNoise& noise,
                 std::span<float> out, const std::function<void()>& between) {
  phase_.resize(kHop);
  sine_.resize(kHop);
  std::fill(out.begin(), out.end(), mix[kHarmonics]);
  // The step of harmonic k in one frame: the reference wraps k F0 / 24000 before it is summed.
  const auto step = [&](size_t i, size_t k) {
    const float radians = f0[i * stride] * static_cast<float>(k) / 24000.0f;
    return static_cast<double>(radians - std::floor(radians)) * kHop;
  };
  for (size_t k = 1; k <= kHarmonics; ++k) {
    double at = 0.0;
    for (size_t i = 0; i < count; ++i) {
      if (between && i % kFramesAtOnce == 0) between();
      at = wrap(at + step(i, k));
      if (f0[i * stride] <= kVoicedHz) continue;
      frame_phase(at, i == 0 ? 0.0 : step(i, k), i + 1 == count ? 0.0 : step(i + 1, k), phase_.data());
      kernels::sin_array(phase_, sine_);
      float* const to = out.data() + i * kHop;
      const float weight = mix[k - 1] * kAmplitude;
      for (size_t s = 0; s < kHop; ++s) to[s] += weight * sine_[s];
    }
  }
  if (noise.enabled) add_noise(f0, stride, mix, noise.seed, out, between);
  kernels::tanh_array(out, out);
  if (between) between();
}

void Source::add_noise(const float* f0, size_t stride, const float* mix, uint64_t seed, std::span<float> out,
                       const std::function<void()>& between) {
  Rng rng(seed);
  for (size_t s = 0; s < out.size(); ++s) {
    if (between && s % kNoiseAtOnce == 0) between();
    const float deviation = f0[s / kHop * stride] > kVoicedHz ? kVoicedNoise : kAmplitude / 3.0f;
    for (size_t k = 0; k < kHarmonics; ++k) out[s] += mix[k] * deviation * rng.normal();
  }
}

}  // namespace syrinx::kokoro
