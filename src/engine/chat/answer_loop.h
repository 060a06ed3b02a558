// Whether an answer has begun to say the same again and again, as small models do: its last kTokens are repetitions of
// kMostPeriod tokens or fewer.  Pure; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace syrinx {

class AnswerLoop {
 public:
  static constexpr size_t kMostPeriod = 64, kTokens = 256;

  // The next token; true: it goes round.
  bool push(int32_t token);

 private:
  std::array<int32_t, kMostPeriod> last_{};    // token n at n % kMostPeriod
  std::array<size_t, kMostPeriod> repeats_{};  // how many tokens in a row are those of i + 1 tokens before
  size_t tokens_ = 0;
};

}  // namespace syrinx
