// Reasons for the end of a piece of speech, as statistics, logs, metrics and answers tell them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace syrinx {

enum class FinishReason : uint8_t {
  kSpoken,   // the model ended it, or its text has been said
  kLength,   // as long as the piece may be
  kSilence,  // the model is silent and does not end
  kRepeats,  // the model says the same again and again
};
inline constexpr std::array kFinishReasons = {FinishReason::kSpoken, FinishReason::kLength, FinishReason::kSilence,
                                              FinishReason::kRepeats};

// "eos", "limit", "silence", "repeats"; part of the interfaces of program and server.
constexpr const char* finish_reason_name(FinishReason reason) {
  constexpr std::array names = {"eos", "limit", "silence", "repeats"};
  return names[static_cast<size_t>(reason)];
}

// Pieces of a text by what ended them.
class FinishCounts {
 public:
  void add(FinishReason reason, size_t pieces = 1) { counts_[static_cast<size_t>(reason)] += pieces; }
  void add(const FinishCounts& more) {
    for (const FinishReason reason : kFinishReasons) add(reason, more.of(reason));
  }
  size_t of(FinishReason reason) const { return counts_[static_cast<size_t>(reason)]; }
  // Those that the model did not end.
  size_t cut() const { return of(FinishReason::kLength) + of(FinishReason::kSilence) + of(FinishReason::kRepeats); }
  // Reason of the whole text: kSpoken if no piece was cut, else the most frequent cut, the first of equal ones.
  FinishReason worst() const {
    FinishReason found = cut() > 0 ? FinishReason::kLength : FinishReason::kSpoken;
    for (const FinishReason reason : {FinishReason::kSilence, FinishReason::kRepeats})
      if (of(reason) > of(found)) found = reason;
    return found;
  }

 private:
  std::array<size_t, kFinishReasons.size()> counts_ = {};
};

}  // namespace syrinx
