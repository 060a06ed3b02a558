// Pronunciation of words that no rule knows: a character network (BART, one encoder and one decoder layer, width 128)
// read from oov_bart_en_us.npz.  Specification: Kokoro, section 8.4.
//
// Immutable and thread-safe; a word takes about a millisecond.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "models/g2p/phoneme.h"

namespace syrinx::g2p {

class Fallback {
 public:
  static constexpr size_t kMaxLetters = 248;
  // kNotFound; kDataLoss naming the tensor that is missing or has another shape.
  static Result<std::unique_ptr<const Fallback>> load(const std::string& path);
  ~Fallback();
  // ASCII letters with ' - and . inside; other characters are unknown to it.  A word longer than the
  // network's positions is said in parts; of one longer than kMaxLetters, which is no word, only the beginning is said.
  Phonemes say(std::string_view word) const;

 private:
  struct Weights;
  explicit Fallback(std::unique_ptr<const Weights> weights);
  std::unique_ptr<const Weights> weights_;
};

}  // namespace syrinx::g2p
