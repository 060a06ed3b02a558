// Rules for the ends of a piece of sound: short fades against clicks, and silence cut to a chosen length.
// Pure functions over mono samples; no state, any thread.
#pragma once

#include <cstddef>
#include <span>

namespace syrinx {

inline constexpr double kFadeMs = 5;

// Multiplies the first or last `ms` by half a cosine wave from 0 to 1 (1 to 0); the outermost sample becomes 0.
// A fade that is longer than the sound is shortened to it.
void fade_in(std::span<float> samples, int rate_hz, double ms = kFadeMs);
void fade_out(std::span<float> samples, int rate_hz, double ms = kFadeMs);

struct SampleRange {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const SampleRange&) const = default;
};

// From the first to the last window of 5 ms whose RMS reaches `quiet_db` (dB below full scale); empty when none does.
SampleRange find_sound(std::span<const float> samples, int rate_hz, double quiet_db);

struct TrimRule {
  double quiet_db = -50;
  double keep_before_ms = 50;  // silence left before the sound, at most
  double keep_after_ms = 100;  // and after it
};

// The part of `samples` that stays, faded at both ends in place; empty when all of it is quiet.
std::span<float> trim_silence(std::span<float> samples, int rate_hz, const TrimRule& rule);

}  // namespace syrinx
