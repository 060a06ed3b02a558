#include <gtest/gtest.h>

#include <functional>
#include <system_error>
#include <thread>

#include "bench/suite/stream_deadlines.h"
#include "run_bench.h"

namespace syrinx::bench {
namespace {

std::string model(const std::string& name) { return std::string(SYRINX_TEST_DATA) + "/transducer/" + name; }

TEST(BenchTransducer, StreamsAtThePaceOfSpeech) {
  const auto loaded = transducer::Model::load(model("hybrid_streaming.nemo"));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const transducer::AttentionContext context = (*loaded)->config().encoder.contexts.front();  // chunks of 160 ms
  ThreadTeam team(1);
  const auto trial = run_streams({.model = **loaded, .context = context, .team = team, .seconds = 0.5}, 3);
  ASSERT_TRUE(trial.has_value()) << trial.error().message;
  EXPECT_EQ(trial->streams, 3u);
  EXPECT_EQ(trial->ms.size(), 9u);
  EXPECT_GT(trial->ms.min(), 0);
  EXPECT_GE(trial->step_chunks, 1);
  EXPECT_GT(trial->labels_per_s, 0);
  // Blanks win: nothing is found.
  const DeadlineWork blanks{
      .model = **loaded, .context = context, .options = {.blank_penalty = -1000}, .team = team, .seconds = 0.2};
  EXPECT_EQ(run_streams(blanks, 1)->labels_per_s, 0);
}

TEST(BenchTransducer, FindsHowManyMeetTheirDeadlines) {
  const auto loaded = transducer::Model::load(model("hybrid_streaming.nemo"));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const transducer::AttentionContext context = (*loaded)->config().encoder.contexts.front();
  ThreadTeam team(1);
  const auto trials = find_streams({.model = **loaded, .context = context, .team = team, .seconds = 0.2}, 2);
  ASSERT_TRUE(trials.has_value()) << trials.error().message;
  ASSERT_FALSE(trials->empty());
  EXPECT_EQ(trials->front().streams, 1u);
  EXPECT_EQ(trials->size(), trials->front().misses == 0 ? 2u : 1u);
}

TEST(BenchTransducer, SaysHowManyThreadsThereCouldBe) {
  const auto loaded = transducer::Model::load(model("hybrid_streaming.nemo"));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  ThreadTeam team(1);
  size_t made = 0;
  const DeadlineWork work{.model = **loaded,
                          .context = (*loaded)->config().encoder.contexts.front(),
                          .team = team,
                          .seconds = 3600,
                          .make_thread = [&](std::function<void()> body) {
                            if (made == 2)
                              throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
                            ++made;
                            return std::thread(std::move(body));
                          }};
  const auto trial = run_streams(work, 3);
  ASSERT_FALSE(trial.has_value());
  EXPECT_EQ(trial.error().code, Code::kUnavailable);
  EXPECT_NE(trial.error().message.find("no more than 2"), std::string::npos) << trial.error().message;
}

TEST(BenchTransducer, RefusesInvalidOptions) {
  const std::string streaming = model("hybrid_streaming.nemo"), whole = model("tdt.nemo");
  const auto code = [](std::vector<const char*> arguments) {
    const Status status = run_bench("transducer", std::move(arguments));
    return status ? Code::kInternal : status.error().code;
  };
  EXPECT_EQ(code({"--model", streaming.c_str(), "--stream", "--streams", "0"}), Code::kInvalidArgument);
  EXPECT_EQ(code({"--model", streaming.c_str(), "--real-time", "--streams", "257"}), Code::kInvalidArgument);
  EXPECT_EQ(code({"--model", streaming.c_str(), "--real-time", "--look-ahead", "5"}), Code::kInvalidArgument);
  EXPECT_EQ(code({"--model", whole.c_str(), "--real-time"}), Code::kUnsupported);
}

}  // namespace
}  // namespace syrinx::bench
