// Shared by the tests of Pocket TTS: the eight small configurations, their checkpoints, and the maker's arrays
// (docs/pocket_tts.md says which there are and how they were made).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../count_within.h"
#include "../relative.h"
#include "../safetensors_arrays.h"
#include "base/mapped_file.h"
#include "models/pocket_tts/config_file.h"
#include "models/pocket_tts/flow_head.h"
#include "models/pocket_tts/flow_lm.h"
#include "tensor/safetensors.h"

namespace syrinx::pocket {

inline std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/pocket_tts/" + name; }

// The maker's arrays, by their file's name below data().
struct Arrays : SafetensorsArrays {
  explicit Arrays(const std::string& name) : SafetensorsArrays(data(name)) {}
};

// A small checkpoint of each architecture.
struct TestModel {
  std::string name;
  FlowLmConfig config;
  size_t latent = 0, voice_width = 0;
  size_t evaluations = 1;  // of the head at each step of the reference
  float eos_threshold = 0.0f;
};

inline std::string file_text(const std::string& name) {
  auto file = MappedFile::open(data(name));
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return {};
  }
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

inline TestModel test_model(const std::string& name) {
  const auto read = parse_config(file_text(name + "/config.yaml"), name);
  if (!read) {
    ADD_FAILURE() << read.error().message;
    return {};
  }
  const Config& c = read->config;
  return {.name = name,
          .config = c.flow_lm,
          .latent = c.mimi.latent,
          .voice_width = c.mimi.inner_width,
          .evaluations = c.flow_lm.head == HeadType::kFlowMatching ? size_t{16} : size_t{1},
          .eos_threshold = c.eos_threshold};
}

inline std::vector<TestModel> test_models() {
  std::vector<TestModel> models;
  for (const char* name : {"english", "english_24l", "english_2026-01", "english_drifting", "english_18m", "english_7m",
                           "english_2m", "flow_matching"})
    models.push_back(test_model(name));
  return models;
}

inline std::string name_of(const ::testing::TestParamInfo<TestModel>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

inline std::shared_ptr<const FlowLmWeights> load(const TestModel& model, Precision precision = Precision::kF32) {
  const Arrays file(model.name + "/model.safetensors");
  auto weights = read_flow_lm(file.tensors(), model.config, model.latent, model.voice_width, model.name, precision);
  if (!weights) {
    ADD_FAILURE() << weights.error().message;
    return nullptr;
  }
  return std::make_shared<const FlowLmWeights>(std::move(*weights));
}

inline View<const float, 2> matrix_view(const std::vector<float>& values, size_t columns) {
  return {values.data(), {values.size() / columns, columns}};
}

// One step of one stream, and one frame of its head.
struct OneStep {
  View<const float, 2> hidden;
  float eos_logit;
};
inline OneStep one_step(FlowLm& flow, const float* latent, FlowLmState& state) {
  const FlowLm::Stream stream{latent, &state};
  const FlowLm::Steps steps = flow.step({&stream, 1});
  return {steps.hidden, steps.logit(0)};
}
inline void sample_one(FlowHead& head, View<const float, 2> hidden, std::span<const float> noise,
                       std::span<float> latent) {
  const FlowHead::Stream stream{{hidden.row(0), hidden.extent(1)}, noise, latent};
  head.sample({&stream, 1});
}

}  // namespace syrinx::pocket
