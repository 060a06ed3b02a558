#include "server/host/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>

#include "server/host/request_log.h"
#include "tests/base/temp_folder.h"

namespace syrinx::server {
namespace {

using testing::HasSubstr;

TEST(Metrics, PrometheusText) {
  Metrics metrics;
  metrics.add("syrinx_requests_total", {{"route", "/x"}, {"code", "200"}});
  metrics.add("syrinx_requests_total", {{"route", "/x"}, {"code", "200"}}, 2);
  metrics.add("syrinx_requests_total", {{"route", "a\"b\\c\nd"}, {"code", "404"}});
  metrics.set("process_open_fds", {}, 7);
  metrics.set("process_open_fds", {}, 6);
  EXPECT_EQ(metrics.text(),
            "# HELP syrinx_requests_total Requests that have been answered.\n"
            "# TYPE syrinx_requests_total counter\n"
            "syrinx_requests_total{route=\"/x\",code=\"200\"} 3\n"
            "syrinx_requests_total{route=\"a\\\"b\\\\c\\nd\",code=\"404\"} 1\n"
            "# HELP process_open_fds Open file descriptors.\n"
            "# TYPE process_open_fds gauge\n"
            "process_open_fds 6\n");
}

TEST(Metrics, AHistogramCountsUpToItsBounds) {
  Metrics metrics;
  for (const double seconds : {0.01, 0.011, 11.0})
    metrics.observe("syrinx_time_to_first_audio_seconds", {{"model", "m"}}, seconds);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"m\",le=\"0.01\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"m\",le=\"0.02\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"m\",le=\"10\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"m\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("_count{model=\"m\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("_sum{model=\"m\"} 11.021"));
}

TEST(Metrics, FiguresThatAreKeptElsewhereAreShownAsTheyStand) {
  Metrics metrics;
  metrics.set_total("process_cpu_seconds_total", {}, 2.5);
  metrics.set_total("process_cpu_seconds_total", {}, 3);
  EXPECT_THAT(metrics.text(), HasSubstr("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 3\n"));
  StepFigures steps;
  steps.buckets[0] = 1;
  steps.buckets.back() = 2;
  steps.took_ns = 1'500'000'000;
  for (int i = 0; i < 2; ++i) metrics.set_steps("syrinx_step_duration_seconds", {{"model", "m"}}, steps);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"m\",le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"m\",le=\"10\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("_bucket{model=\"m\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("_sum{model=\"m\"} 1.5\n"));
}

TEST(Metrics, BegunCountersAreZero) {
  Metrics metrics;
  metrics.add("syrinx_rejected_total", {{"reason", "loading"}});
  metrics.begin("syrinx_rejected_total", {{"reason", "loading"}});
  metrics.begin("syrinx_rejected_total", {{"reason", "draining"}});
  metrics.begin("syrinx_queue_delay_seconds", {{"model", "m"}});
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("syrinx_rejected_total{reason=\"draining\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("syrinx_rejected_total{reason=\"loading\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("syrinx_queue_delay_seconds_bucket{model=\"m\",le=\"+Inf\"} 0\n"));
}

TEST(RequestLog, WritesAllLinesBeforeItEnds) {
  const TempFolder folder;
  const std::string path = folder.path() + "/log";
  const int descriptor = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  {
    RequestLog log(descriptor);
    ASSERT_TRUE(log.start());
    for (int i = 0; i < 1000; ++i) log.write(std::to_string(i));
    EXPECT_EQ(log.dropped(), 0U);
  }
  ::close(descriptor);
  std::ifstream file(path);
  std::string line;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(std::getline(file, line));
    EXPECT_EQ(line, std::to_string(i));
  }
  EXPECT_FALSE(std::getline(file, line));
}

// A pipe that nobody empties: who logs goes on all the same.
TEST(RequestLog, DropsAndCountsExcessLines) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  auto log = std::make_unique<RequestLog>(ends[1]);
  ASSERT_TRUE(log->start());
  const std::string line(1 << 16, 'x');
  for (size_t i = 0; i < 2 * RequestLog::kMaxLines + 2; ++i) log->write(i < 2 ? line : "y");
  EXPECT_GT(log->dropped(), 0U);
  std::thread reader([&] {
    char bytes[4096];
    while (::read(ends[0], bytes, sizeof(bytes)) > 0) continue;
  });
  log.reset();
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
}

TEST(RequestLog, EndsWithUnreadLines) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string line(1 << 20, 'x');
  std::atomic<bool> ended{false};
  std::thread owner([&] {
    {
      RequestLog log(ends[1]);
      EXPECT_TRUE(log.start());
      log.write(line);
    }
    ended = true;
  });
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!ended && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(ended);
  char bytes[4096];
  for (size_t left = line.size() + 1; left > 0;) left -= static_cast<size_t>(::read(ends[0], bytes, sizeof(bytes)));
  owner.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(RequestLog, TimesAreOfIso8601) { EXPECT_THAT(utc_now(), testing::MatchesRegex("....-..-..T..:..:..\\....Z")); }

}  // namespace
}  // namespace syrinx::server
