// A pool of four streams with one of the small checkpoints of Qwen3-TTS, on one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/families/qwen_tts/frame_pool.h"
#include "engine/families/qwen_tts/qwen_model.h"

namespace syrinx::qwen_tts {

class PoolFixture : public testing::Test {
 protected:
  explicit PoolFixture(std::string kind) : kind_(std::move(kind)) {}
  void SetUp() override {
    auto model = QwenModel::load(std::string(SYRINX_TEST_DATA) + "/qwen_tts/" + kind_, {});
    ASSERT_TRUE(model) << model.error().message;
    model_ = *model;
    auto pool = FramePool::make(model_->weights(), model_->codec(), runner_, queue_, 4);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = std::move(*pool);
  }

  std::string kind_;
  ThreadTeam team_{1};
  nn::Runner runner_{team_};
  Scheduler scheduler_;
  StepQueue queue_{scheduler_};
  std::shared_ptr<const QwenModel> model_;
  std::unique_ptr<FramePool> pool_;
};

// Frames of changing codes, and the end: [frames + 1, codebooks].
inline std::vector<int32_t> changing_codes(const QwenModel& model, size_t frames, size_t period = 1000) {
  const size_t codebooks = model.config().codebooks;
  std::vector<int32_t> codes;
  for (size_t n = 0; n < frames; ++n)
    for (size_t g = 0; g < codebooks; ++g) codes.push_back(static_cast<int32_t>((n % period * 7 + g * 5 + 3) % 32));
  codes.push_back(model.config().codec.eos);
  codes.resize(codes.size() + codebooks - 1);
  return codes;
}

}  // namespace syrinx::qwen_tts
