// Draws a token from logits: the penalty of tokens that came before, temperature, top-k, top-p, min-p, one random
// number.
//
// A draw depends on its place alone, (seed, stream, frame, codebook), and on the logits: neither on the draws before it
// nor on what other streams do.  The random number is word 0 of Philox4x32-10 under the seed at the counter (codebook,
// frame, stream, kSamplerWord), which no Rng of that seed reaches (base/rng.h); this is part of the interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace syrinx::nn {

inline constexpr uint32_t kSamplerWord = 0x64726177;

struct SamplerSettings {
  float temperature = 1.0f;  // 0: the largest logit
  size_t top_k = 0;          // the k largest logits and whatever equals the last of them; 0: all
  float top_p = 1.0f;        // the fewest likeliest tokens that reach this probability together, one at least
  float min_p = 0.0f;        // a token less likely than the likeliest one times this is left out
  float penalty = 1.0f;      // a logit of a token that came before is divided by it, or multiplied where it is negative
};

struct DrawPlace {
  uint64_t seed = 0;
  uint32_t stream = 0, frame = 0, codebook = 0;
};

// [0, 1), in steps of 2^-24.
float draw_uniform(const DrawPlace& place);

// Scratch for one thread at a time.
class Sampler {
 public:
  explicit Sampler(size_t vocabulary);

  // A token, or kNone where no logit is finite, or one or the temperature is not a number.  `logits` [vocabulary] is
  // written over; minus infinity stands for a token that is not allowed.  `seen` are tokens of the vocabulary, any
  // number of times. Allocates nothing.
  static constexpr int32_t kNone = -1;
  int32_t draw(std::span<float> logits, const SamplerSettings& settings, std::span<const int32_t> seen,
               const DrawPlace& place);

 private:
  struct Candidate {
    float logit = 0, weight = 0;
    int32_t token = 0;
  };
  struct Range {
    double least = 0, most = 0;
  };

  void penalise(std::span<float> logits, float penalty, std::span<const int32_t> seen);
  void take_candidates(std::span<const float> logits, const SamplerSettings& settings, float peak);
  void take_largest(std::span<const float> logits, size_t count);
  void take_likely(std::span<const float> logits, const SamplerSettings& settings, float peak);
  void gather(std::span<const float> logits, float least);
  std::span<Candidate> candidates() { return std::span(candidates_).first(count_); }
  template <class Predicate>
  void keep(const Predicate& is_kept);  // of the candidates
  double weigh(float peak, float temperature);
  bool cut_tail(Range wanted, double known_weight);
  int32_t draw_by_blocks(std::span<const float> logits, const SamplerSettings& settings, float peak, double uniform);

  std::vector<float> sorted_;          // [vocabulary]
  std::vector<uint8_t> seen_;          // [vocabulary], all zero between draws
  std::vector<Candidate> candidates_;  // [vocabulary], the first count_ in the order of the tokens
  size_t count_ = 0;
  std::vector<double> sums_;   // of weights [blocks of logits], by kernels::block_exponentials
  std::vector<float> maxima_;  // of logits [blocks of logits]
};

}  // namespace syrinx::nn
