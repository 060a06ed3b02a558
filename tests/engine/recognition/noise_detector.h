// Voice activity for tests: noise is speech, and nothing else.
#pragma once

#include <cmath>
#include <fstream>
#include <string>

#include "tests/models/silero/container_writer.h"

namespace syrinx {

// Writes the file of a detector to `path`, which it returns; `doubt`: of all sound, in logits; `gain`: how sure it is.
inline std::string write_noise_detector(const std::string& path, float doubt = 0, float gain = 64) {
  silero::Tensors tensors = silero::random_tensors(5);
  // These weights say 0.396 of silence and mostly more of noise: that is made plain.
  for (float& weight : tensors.output_weight) weight *= gain;
  for (float& bias : tensors.output_bias) bias = gain * (bias + 0.405f) - doubt;
  const auto bytes = silero::write_container(tensors).bytes;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

}  // namespace syrinx
