// Settings that a recogniser is loaded with.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "engine/families/transducer/transducer_recogniser.h"
#include "server/host/recognition_model.h"
#include "tests/store/files.h"

namespace syrinx::server {
namespace {

class RecognitionLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    settings_.speech_model = "";
    settings_.recognition_model = SYRINX_TEST_DATA "/transducer/hybrid_streaming.nemo";
  }
  const TransducerRecogniser& load() {
    auto model = RecognitionModel::load(settings_);
    EXPECT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
    return static_cast<const TransducerRecogniser&>(model_->recogniser());
  }

  const testing::Folder home_;
  const testing::ScopedVariable own_{"SYRINX_HOME", home_.path()};
  Settings settings_;
  std::shared_ptr<const RecognitionModel> model_;
};

TEST_F(RecognitionLoad, HasTheThreadsThatAreAskedFor) {
  for (const int threads : {1, 3}) {
    settings_.recognition_threads = threads;
    EXPECT_EQ(load().threads(), threads);
  }
}

TEST_F(RecognitionLoad, HasThePrecisionThatIsAskedFor) {
  EXPECT_EQ(load().precision(), TransducerRecogniser::kDefaultPrecision);
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    settings_.recognition_precision = precision_name(precision);
    EXPECT_EQ(load().precision(), precision);
  }
}

TEST_F(RecognitionLoad, HasAHeartbeatWhereOneIsAskedFor) {
  settings_.recognition_heartbeat = true;
  const TransducerRecogniser& recogniser = load();
  for (int i = 0; i < 60000 && recogniser.heartbeats() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(recogniser.heartbeats(), 0U);
}

// Live streams are admitted by the steps of one.
TEST_F(RecognitionLoad, StreamIsMeasuredBySteps) {
  const TransducerRecogniser& recogniser = load();
  EXPECT_GT(recogniser.steps().took_ns, 0);
  EXPECT_NEAR(model_->stream_ms(), static_cast<double>(recogniser.steps().took_ns) * 1e-6, 1e-6);
}

}  // namespace
}  // namespace syrinx::server
