// The random generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC11), a counter turned into noise by ten rounds.  Same seed, same draws, on every machine and with any number of
// threads.
//
// The order of draws is part of the interface; changing it changes every seeded sound:
// - key = (low, high) half of the seed; counter words = (block low, block high, stream low, stream high), block from 0;
// - each block yields its four words in order 0, 1, 2, 3;
// - uniform() takes one word; normal() takes two words at once for two values, returns the cosine one first and keeps
//   the sine one for the next normal(); uniform() in between does not disturb the kept value.
// Not for secrets.  An Rng is a value: copying it copies its place.  One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace syrinx {

// One block of the generator: ten rounds over `counter` under `key`.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Rng {
 public:
  // Streams of one seed never meet: give each use (noise, sampling, slot) its own number.
  explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t next_u32();
  float uniform();  // [0, 1): the upper 24 bits of a word times 2^-24
  float normal();   // mean 0, variance 1: Box-Muller in double on (word + 1) 2^-32, rounded to float
  void fill_uniform(std::span<float> values);  // the same values as so many calls
  void fill_normal(std::span<float> values);

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t block_ = 0;  // the next block to compute
  std::array<uint32_t, 4> words_{};
  uint32_t used_ = 4;  // words of `words_` already given
  bool has_spare_ = false;
  float spare_ = 0;
};

}  // namespace syrinx
