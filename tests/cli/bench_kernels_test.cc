#include "cli/bench_kernels.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace syrinx::cli {
namespace {

TEST(BenchKernels, EveryCaseRunsOnAnyNumberOfThreads) {
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    std::vector<KernelCase> cases = matrix_kernel_cases(threads);
    for (KernelCase& item : stream_kernel_cases()) cases.push_back(std::move(item));
    for (KernelCase& item : codec_kernel_cases()) cases.push_back(std::move(item));
    for (KernelCase& item : vector_kernel_cases(threads)) cases.push_back(std::move(item));
    for (const KernelCase& item : cases) {
      SCOPED_TRACE(item.name + " " + item.shape);
      EXPECT_GT(item.work, 0);
      item.run(team);
    }
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
  const Status status = run_bench_kernels({.threads = 1, .runs = 1, .json = true});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const Result<Json> report = parse_json(text, "the report");
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_NE(report->find("kernels"), nullptr);
  EXPECT_EQ(report->find("kernels")->array()->size(), matrix_kernel_cases(1).size() + stream_kernel_cases().size() +
                                                          codec_kernel_cases().size() + vector_kernel_cases(1).size());
  EXPECT_NE(report->find("limits")->find("f32_gop_per_s")->find("one_thread"), nullptr);
}

TEST(BenchKernels, TableNamesMachineAndLimits) {
  testing::internal::CaptureStdout();
  const Status status = run_bench_kernels({.threads = 2, .runs = 1, .json = false});
  const std::string text = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(status);
  for (const char* part : {"machine", "read", "f32", "attention", "layer_norm", "share of limit"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
}

TEST(BenchKernels, NumbersThatMakeNoSense) {
  for (const BenchKernelsOptions& options : {BenchKernelsOptions{.threads = -1, .runs = 1, .json = false},
                                             BenchKernelsOptions{.threads = 100000, .runs = 1, .json = false},
                                             BenchKernelsOptions{.threads = 1, .runs = 0, .json = false}}) {
    const Status status = run_bench_kernels(options);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace syrinx::cli
