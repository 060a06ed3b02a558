// Shared by the tests of transducers: the small checkpoints of tests/data/transducer, loaded, and the reference's
// noise.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "models/transducer/checkpoint.h"
#include "models/transducer/encoder_weights.h"
#include "models/transducer/features.h"
#include "nn/runner.h"

namespace syrinx::transducer {

inline std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/transducer/" + name; }

// Ends the test program where it cannot be opened: nothing could be tested.
inline Checkpoint opened(const std::string& name) {
  Result<Checkpoint> checkpoint = Checkpoint::open(data(name));
  if (!checkpoint) {
    ADD_FAILURE() << checkpoint.error().message;
    std::abort();
  }
  return std::move(*checkpoint);
}

// The same numbers as noise() of tools/reference/transducer.py.
inline std::vector<float> noise(size_t count) {
  std::vector<float> out(count);
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    const int32_t value = static_cast<int32_t>(state >> 16) - 32768;
    out[i] = static_cast<float>(value >> (1 + i / 1600 % 5)) / 32768.0f;
  }
  return out;
}

inline std::vector<float> flat(View<const float, 2> rows) {
  std::vector<float> out;
  for (size_t t = 0; t < rows.extent(0); ++t) out.insert(out.end(), rows.row(t), rows.row(t) + rows.extent(1));
  return out;
}

// A checkpoint's encoder and features, and threads to run them.
struct Loaded {
  Loaded(const std::string& name, Precision precision, int threads = 1)
      : checkpoint(opened(name)), team(threads), runner(team) {
    WeightReader reader(checkpoint, precision);
    auto made = Features::make(reader, checkpoint.config().features);
    encoder = std::make_shared<const EncoderWeights>(read_encoder(reader, checkpoint.config().encoder));
    for (const char* prefix : {"decoder.", "joint.", "ctc_decoder."}) reader.know_prefix(prefix);
    const Status status = reader.finish();
    if (!status || !made) {
      ADD_FAILURE() << (made ? status.error().message : made.error().message);
      std::abort();
    }
    features = std::make_shared<const Features>(std::move(*made));
  }

  // Features of the first samples of the noise.
  std::vector<float> mels(size_t samples) {
    const size_t columns = features->config().mels, frames = features->frames(samples);
    std::vector<float> out(frames * columns);
    features->compute(noise(samples), {out.data(), {frames, columns}}, team);
    return out;
  }

  Checkpoint checkpoint;
  ThreadTeam team;
  nn::Runner runner;
  std::shared_ptr<const EncoderWeights> encoder;
  std::shared_ptr<const Features> features;
};

}  // namespace syrinx::transducer
