#include "bench/suite/bench_kernels.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace syrinx::bench {
namespace {

// On three threads, which is not a power of two and may be more than there are cores; on one they run for the JSON.
TEST(BenchKernels, EveryCaseRunsOnSeveralThreads) {
  ThreadTeam team(3);
  for (const KernelCase& item : all_kernel_cases(3)) {
    SCOPED_TRACE(item.name + " " + item.shape);
    EXPECT_GT(item.work, 0);
    item.run(team);
  }
}

TEST(BenchKernels, TimingIsOrdered) {
  ThreadTeam team(1);
  KernelCase item{"nothing", "", LimitKind::kF32, 1.0, [](ThreadTeam&) {}};
  item.run = [count = 0](ThreadTeam&) mutable { ++count; };
  const Timing timing = time_case(item, team, 3);
  EXPECT_LE(timing.min_us, timing.median_us);
  EXPECT_LE(timing.median_us, timing.max_us);
}

TEST(BenchKernels, JsonIsOneLineWithEveryCase) {
  testing::internal::CaptureStdout();
  const Status status = run_bench_kernels({.threads = 1, .runs = 1, .json = true, .only = ""});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const Result<Json> report = parse_json(text, "the report");
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_NE(report->find("kernels"), nullptr);
  EXPECT_EQ(report->find("kernels")->array()->size(), all_kernel_cases(1).size());
  EXPECT_NE(report->find("limits")->find("f32_gop_per_s")->find("one_thread"), nullptr);
}

TEST(BenchKernels, TableNamesMachineAndLimits) {
  testing::internal::CaptureStdout();
  const Status status = run_bench_kernels({.threads = 2, .runs = 1, .json = false, .only = "attention"});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status);
  for (const char* part : {"machine", "read", "f32", "attention", "share of limit"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
  EXPECT_EQ(text.find("layer_norm"), std::string::npos) << text;
}

TEST(BenchKernels, NumbersThatMakeNoSense) {
  for (const BenchKernelsOptions& options :
       {BenchKernelsOptions{.threads = -1, .runs = 1, .json = false, .only = ""},
        BenchKernelsOptions{.threads = 100000, .runs = 1, .json = false, .only = ""},
        BenchKernelsOptions{.threads = 1, .runs = 0, .json = false, .only = ""}}) {
    const Status status = run_bench_kernels(options);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  }
  const Status unknown = run_bench_kernels({.threads = 1, .runs = 1, .json = false, .only = "no such kernel"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace syrinx::bench
