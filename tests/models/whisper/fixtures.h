// Shared by the tests of Whisper's network: the small checkpoint in both published forms and the maker's arrays
// (tests/data/whisper/README.md).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "../relative.h"
#include "../safetensors_arrays.h"
#include "models/whisper/decoder.h"
#include "models/whisper/encoder.h"
#include "models/whisper/features.h"
#include "models/whisper/model.h"

namespace syrinx::whisper {

inline std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/whisper/" + name; }

struct Arrays : SafetensorsArrays {
  Arrays() : SafetensorsArrays(data("reference.safetensors")) {}
};

inline std::shared_ptr<const Model> load(const std::string& form, Precision precision = Precision::kF32,
                                         const std::string& cache = "") {
  auto model = Model::load(data(form), {.precision = precision, .cache_folder = cache});
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  return *model;
}

inline std::vector<float> values_of(View<const float, 2> rows, size_t columns) {
  std::vector<float> values;
  for (size_t n = 0; n < rows.extent(0); ++n) values.insert(values.end(), rows.row(n), rows.row(n) + columns);
  return values;
}
inline std::vector<float> values_of(View<const float, 2> rows) { return values_of(rows, rows.extent(1)); }

// The maker's window through our encoder.
struct Encoded {
  explicit Encoded(std::shared_ptr<const Model> from, int threads = 1)
      : Encoded(std::move(from), Arrays().get("mel"), threads) {}
  Encoded(std::shared_ptr<const Model> from, std::vector<float> window, int threads = 1)
      : model(std::move(from)), team(threads), mel(std::move(window)) {
    encode();
  }
  View<const float, 2> frames() const {
    return {mel.data(), {mel.size() / model->config().mels, model->config().mels}};
  }
  void encode() {
    audio = AudioState::make(*model);
    encoder = std::make_unique<Encoder>(model, team);
    encoder->encode(frames(), audio);
  }
  std::shared_ptr<const Model> model;
  ThreadTeam team;
  std::vector<float> mel;
  AudioState audio;
  std::unique_ptr<Encoder> encoder;
};

}  // namespace syrinx::whisper
