// How a pull is told: figures, bar, JSON.
#include "cli/pull_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace syrinx::cli {
namespace {

using ::testing::HasSubstr;

TEST(PullReport, Sizes) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1200), "1.2 kB");
  EXPECT_EQ(size_text(92361271), "92.4 MB");
  EXPECT_EQ(size_text(3200000000), "3.20 GB");
}

TEST(PullReport, Times) {
  EXPECT_EQ(time_text(-5), "0 s");
  EXPECT_EQ(time_text(4.4), "4 s");
  EXPECT_EQ(time_text(125), "2:05 min");
  EXPECT_EQ(time_text(3723), "1:02:03 h");
  EXPECT_EQ(time_text(1e300), "99:59:59 h");
}

TEST(PullReport, BarFitsItsLine) {
  EXPECT_EQ(bar_text(37000000, 92500000, 10e6, 70),
            "[########-------------]  40 %  37.0 MB / 92.5 MB  10.0 MB/s  6 s left");
  EXPECT_THAT(bar_text(0, 100, 0, 80), HasSubstr("  0 %  0 B / 100 B"));
  EXPECT_THAT(bar_text(200, 100, 0, 80), HasSubstr("100 %"));
  EXPECT_THAT(bar_text(0, 0, 0, 80), HasSubstr("100 %"));
  for (int columns = 1; columns < 200; ++columns) {
    EXPECT_LE(bar_text(37000000, 92500000, 10e6, columns).size(), static_cast<size_t>(std::max(columns, 2)));
  }
}

TEST(PullReport, EventsAreOneObjectALine) {
  PullEvent event;
  event.kind = PullEvent::Kind::kPlan;
  event.model = "bird";
  event.text = "A \"bird\"\n";
  event.licence = "MIT";
  event.total_bytes = 7;
  event.missing_bytes = 5;
  event.free_bytes = 9;
  const std::string line = event_json(event);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto json = parse_json(line, "event");
  ASSERT_TRUE(json);
  EXPECT_EQ(*json->find("event")->string(), "plan");
  EXPECT_EQ(*json->find("text")->string(), event.text);
  EXPECT_EQ(*json->find("missing_bytes")->whole(), 5);
  EXPECT_EQ(json->find("done_bytes"), nullptr);
  for (const auto kind : {PullEvent::Kind::kWaiting, PullEvent::Kind::kChecking, PullEvent::Kind::kSource,
                          PullEvent::Kind::kNotice, PullEvent::Kind::kDone, PullEvent::Kind::kProgress}) {
    event.kind = kind;
    EXPECT_TRUE(parse_json(event_json(event), "event"));
  }
}

TEST(PullReport, LinesComeSeldomAndBarsOften) {
  ManualClock clock;
  PullEvent progress;
  progress.kind = PullEvent::Kind::kProgress;
  progress.total_bytes = 1000;
  const auto run = [&](PullStyle style) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    {
      PullReport report(style, clock);
      PullEvent source;
      source.kind = PullEvent::Kind::kSource;
      source.text = "x from y";
      report.show(source);
      for (uint64_t done = 0; done <= 1000; done += 50) {
        progress.done_bytes = done;
        report.show(progress);
        clock.advance_ns(1'000'000'000);
      }
      PullEvent done;
      done.kind = PullEvent::Kind::kDone;
      done.model = "bird";
      report.show(done);
    }
    return std::pair(::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr());
  };
  const auto lines = run(PullStyle::kLines);
  EXPECT_EQ(lines.second, "");
  EXPECT_EQ(std::count(lines.first.begin(), lines.first.end(), '\n'), 4);  // source, two of progress, done
  const auto bar = run(PullStyle::kBar);
  EXPECT_EQ(bar.first, "fetching x from y\nbird is ready\n");
  EXPECT_EQ(std::count(bar.second.begin(), bar.second.end(), '['), 21 + 22);  // a bar begins with one, its clearing too
  const auto json = run(PullStyle::kJson);
  EXPECT_EQ(std::count(json.first.begin(), json.first.end(), '\n'), 23);
}

}  // namespace
}  // namespace syrinx::cli
