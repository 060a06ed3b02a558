// Noise that the heads start from (spec pocket-tts.md, section 3.4): blocks of independent normal numbers, mean 0,
// standard deviation sqrt(temperature), cut off at +-clamp where one is given.
//
// Two generators.  kPhilox is ours (base/rng.h): the order of draws is written there.  kTorch repeats PyTorch 2.15 on
// the CPU after torch.manual_seed(seed), so that a seed gives the maker's noise: MT19937; at::normal_fill from 16
// numbers on, else at::normal_distribution<double>; torch.nn.init.trunc_normal_ as it is since it rejects.
// The maker draws a block in every call of the language model and drops those of prompts: the first step with a stored
// voice uses block 1, with a voice computed after seeding block 2.  Call fill() as often to stay in step.
//
// Temperature 0 gives zeros without a draw, also with a clamp (where the maker divides by zero).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/rng.h"

namespace syrinx::pocket {

// PyTorch's generator of the CPU: one engine, one kept number.  A value; one thread at a time.
class TorchGenerator {
 public:
  explicit TorchGenerator(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}  // torch.manual_seed(seed)

  void fill_uniform(std::span<float> out, float low, float high);  // Tensor.uniform_(low, high)
  void fill_normal(std::span<float> out, double deviation);        // Tensor.normal_(0, deviation)

 private:
  float next_float();    // [0, 1): the lower 24 bits of a word
  double next_double();  // [0, 1): the lower 53 bits of two words, the first one above
  double next_normal();
  void normal_sixteen(float* out, float deviation);

  std::mt19937 engine_;
  std::optional<double> kept_;  // the sine of the last pair
};

struct NoiseSettings {
  float temperature = 0.3f;
  std::optional<float> clamp;  // noise_clamp
};

class Noise {
 public:
  enum class Generator : uint8_t { kPhilox, kTorch };

  // Blocks of `width` numbers.  kInvalidArgument: a temperature that is not 0 to 100, a clamp that is not above 0.
  static Result<Noise> create(Generator generator, uint64_t seed, size_t width, const NoiseSettings& settings);

  // The next block; out.size() == width.  Allocates nothing.
  void fill(std::span<float> out);

 private:
  Noise(Generator generator, uint64_t seed, size_t width, const NoiseSettings& settings);
  void draw_normal(std::span<float> out);
  void draw_uniform(std::span<float> out, float low, float high);
  void fill_by_normal(std::span<float> out);
  void fill_by_uniform(std::span<float> out);

  std::variant<Rng, TorchGenerator> source_;
  double deviation_ = 0;
  std::optional<float> clamp_;
  std::vector<float> candidates_, chances_;  // [width] scratch
  std::vector<uint8_t> pending_;             // [width]
};

}  // namespace syrinx::pocket
