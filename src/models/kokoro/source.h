// The harmonic source of the vocoder (specification 5.1): nine sines from F0, mixed to one signal at 24 kHz.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace syrinx::kokoro {

struct SourceNoise {
  bool enabled = false;
  uint64_t seed = 0;
};

// f0 [2F] in Hz, `f0_stride` floats apart; mix: nine weights and a bias.  out [600F].  The phase is summed per 80 Hz
// frame in double and wrapped there, so that it does not drift.  With noise, draw h of sample s is normal number 9 s +
// h of the seed's stream: std 0.003 where voiced, 0.1 / 3 where not.
class Source {
 public:
  // `between` is called now and then, after two milliseconds or so; empty: never.
  void run(const float* f0, size_t f0_stride, size_t count, const float* mix, const SourceNoise& noise,
           std::span<float> out, const std::function<void()>& between = {});

 private:
  void add_noise(const float* f0, size_t f0_stride, const float* mix, uint64_t seed, std::span<float> out,
                 const std::function<void()>& between);

  std::vector<float> phase_, sine_;
};

}  // namespace syrinx::kokoro
