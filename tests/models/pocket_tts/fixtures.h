// What the tests of Pocket TTS share: the eight small configurations, their checkpoints, and the maker's arrays
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

#include "base/mapped_file.h"
#include "models/pocket_tts/flow_lm_weights.h"
#include "tensor/safetensors.h"

namespace syrinx::pocket {

inline std::string data(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/pocket_tts/" + name; }

// A safetensors file with the bytes it stands on.
class Arrays {
 public:
  explicit Arrays(const std::string& name) {
    auto file = MappedFile::open(data(name));
    if (!file) ADD_FAILURE() << file.error().message;
    file_ = std::move(*file);
    auto parsed = Safetensors::parse(file_.bytes(), name);
    if (!parsed) ADD_FAILURE() << parsed.error().message;
    tensors_ = std::move(*parsed);
  }
  const Safetensors& tensors() const { return tensors_; }
  bool has(const std::string& name) const { return tensors_.find(name) != nullptr; }
  template <class T = float>
  std::vector<T> get(const std::string& name) const {
    const TensorRef* const tensor = tensors_.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    if (tensor == nullptr) return {};
    std::vector<T> values(tensor->bytes.size() / sizeof(T));
    std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
    return values;
  }

 private:
  MappedFile file_;
  Safetensors tensors_;
};

struct TestModel {
  const char* name;
  FlowLmConfig config;
  size_t latent, voice_width;
  size_t evaluations;  // of the head at each step of the reference
};

inline FlowLmConfig flow_config(size_t width, size_t heads, size_t layers, size_t hidden, HeadType head, size_t depth,
                                size_t head_width) {
  FlowLmConfig c;
  c.transformer.width = c.transformer.attention_width = width;
  c.transformer.heads = c.transformer.key_heads = heads;
  c.transformer.layers = layers;
  c.transformer.hidden = hidden;
  c.head = head;
  c.head_depth = depth;
  c.head_width = head_width;
  c.condition = width;
  c.text_bins = 400;
  c.bos_before_voice = true;
  return c;
}

inline std::vector<TestModel> test_models() {
  std::vector<TestModel> models = {
      {"english", flow_config(32, 2, 2, 128, HeadType::kLsd, 2, 24), 32, 8, 1},
      {"english_24l", flow_config(16, 2, 24, 16, HeadType::kLsd, 1, 20), 32, 8, 1},
      {"english_2026-01", flow_config(32, 2, 2, 64, HeadType::kLsd, 2, 24), 32, 16, 1},
      {"english_drifting", flow_config(32, 4, 2, 64, HeadType::kDrifting, 2, 24), 8, 8, 1},
      {"english_18m", flow_config(64, 1, 2, 64, HeadType::kDrifting, 2, 24), 32, 10, 1},
      {"english_7m", flow_config(24, 4, 2, 24, HeadType::kDrifting, 2, 20), 32, 10, 1},
      {"english_2m", flow_config(20, 3, 2, 26, HeadType::kPointwise, 2, 16), 32, 10, 1},
      {"flow_matching", flow_config(32, 2, 2, 32, HeadType::kFlowMatching, 2, 24), 6, 8, 16},
  };
  models[2].config.bos_before_voice = false;
  for (const size_t small : {4, 5, 6}) models[small].config.project_condition = true;
  models[4].config.condition = 28;
  models[5].config.condition = 18;
  models[5].config.text_rank = 12;
  models[5].config.transformer.attention_width = 256;
  models[5].config.transformer.key_heads = 2;
  models[6].config.condition = 14;
  models[6].config.text_rank = 10;
  models[6].config.transformer.attention_width = 192;
  models[6].config.transformer.key_heads = 1;
  return models;
}

inline std::string name_of(const ::testing::TestParamInfo<TestModel>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

inline std::shared_ptr<const FlowLmWeights> load(const TestModel& model) {
  const Arrays file(std::string(model.name) + "/model.safetensors");
  auto weights = read_flow_lm(file.tensors(), model.config, model.latent, model.voice_width, model.name);
  if (!weights) {
    ADD_FAILURE() << weights.error().message;
    return nullptr;
  }
  return std::make_shared<const FlowLmWeights>(std::move(*weights));
}

// Largest difference, as a part of the largest value.
inline double relative(const std::vector<float>& ours, const std::vector<float>& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  if (ours.size() != theirs.size() || theirs.empty()) return 1e9;
  double worst = 0, largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!std::isfinite(ours[i])) return 1e9;
    worst = std::max(worst, std::fabs(static_cast<double>(ours[i]) - theirs[i]));
    largest = std::max(largest, std::fabs(static_cast<double>(theirs[i])));
  }
  return worst / largest;
}

inline View<const float, 2> matrix_view(const std::vector<float>& values, size_t columns) {
  return {values.data(), {values.size() / columns, columns}};
}

}  // namespace syrinx::pocket
