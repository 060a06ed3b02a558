#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "bench/suite/step_probe.h"
#include "run_bench.h"

namespace syrinx::bench {
namespace {

const std::string kData = SYRINX_TEST_DATA;

// The probe waits behind the step that runs; how long is the machine's to say, but not less than what was slept.
TEST(StepProbe, MeasuresTheStepsOfATurn) {
  Scheduler scheduler;
  StepQueue queue(scheduler);
  StepProbe probe(scheduler);
  const auto step = [&] {
    while (scheduler.waiting() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  {
    StepQueue::Turn turn(queue);
    step();
    turn.give_way();
    step();
  }
  const Times waits = probe.stop();
  ASSERT_GE(waits.size(), 2u);
  EXPECT_GE(waits.at(1), 15);
}

TEST(BenchSteps, TellsEachWorkOfAVoice) {
  const std::string model = kData + "/pocket_tts/english", voice = model + "/voice.safetensors";
  const std::string recording = kData + "/pocket_tts/voice.wav";
  testing::internal::CaptureStdout();
  const Status status = run_bench("steps", {"--speech", model.c_str(), "--voice", voice.c_str(), "--recording",
                                            recording.c_str(), "--text", "Hello.", "--runs", "1", "--json"});
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status.has_value()) << status.error().message;
  for (const char* work :
       {"jobs of 1 ms", "load a model", "speak a text", "clone a voice", "export a voice", "read an exported voice"})
    EXPECT_NE(out.find(work), std::string::npos) << out;
}

TEST(BenchSteps, RefusesNeitherOrBothModels) {
  EXPECT_EQ(run_bench("steps", {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(run_bench("steps", {"--speech", "a", "--recognition", "b"}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(run_bench("steps", {"--recognition", "a"}).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace syrinx::bench
