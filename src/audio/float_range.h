// Samples written as floats: sound from -1 to 1, or integers whose writer forgot to divide them, a usual slip.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace syrinx {

class FloatRange {
 public:
  // Any number of samples; those that are not finite are left to others.
  void add(std::span<const float> samples);

  // The factor for samples like those so far.  1, where they stay within kLoudestFloat but for single ones, unless all
  // are whole numbers and some greater than 1.  Else 2^-15, 2^-23 or 2^-31: that of the least integers of 16, 24 or 32
  // bits which they can be.  kDataLoss: no such integers, as they are too great or too small.
  Result<float> scale(const std::string& name) const;

  // For sound that comes: adds the samples one by one and multiplies each by the factor so far, which is that of 16
  // bits while nothing but -1, 0 and 1 has come.  Where there is none, the last one stays and they are clipped at full
  // scale; that is kDataLoss, once they all are.
  Status rescale(std::span<float> samples, const std::string& name);

  static constexpr float kLoudestFloat = 16;  // 24 dB above full scale

 private:
  bool add(float sample);  // whether it may change the factor

  bool all_whole_ = true;
  float peak_ = 0;
  uint64_t samples_ = 0, too_loud_ = 0;
  float factor_ = 0x1p-15f;  // of rescale()
  bool has_scale_ = true;
};

}  // namespace syrinx
