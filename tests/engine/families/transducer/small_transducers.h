// The small random transducers of tests/data behind the recogniser's interface, and something for them to hear.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/families/transducer/transducer_recogniser.h"

namespace syrinx {

inline std::vector<float> noise(double seconds, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  std::vector<float> out(static_cast<size_t>(seconds * kRecognitionRateHz));
  for (float& sample : out) sample = normal(random);
  return out;
}

inline Knobs window_knob(const StreamWindow& window) {
  return {{"stream_window", fmt::format("{},{},{}", window.left_s, window.chunk_s, window.right_s)}};
}

inline Knobs beam_knob(int beam) { return {{"beam", static_cast<double>(beam)}}; }

inline Result<std::shared_ptr<Recogniser>> load(const std::string& name, const std::string& voice_activity = "",
                                                RecogniserOptions options = {.max_streams = 4}) {
  options.files.name = name;
  options.files.checkpoint = std::string(SYRINX_TEST_DATA) + "/transducer/" + name;
  options.files.voice_activity = voice_activity;
  options.precision = Precision::kF32;
  options.threads = 1;
  return TransducerRecogniser::load(options);
}

}  // namespace syrinx
