#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace syrinx {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override {
    set_log_sink({});
    set_log_level(LogLevel::kWarning);
  }
  void capture() {
    set_log_sink([this](LogLevel level, std::string_view message) { lines_.emplace_back(level, message); });
  }
  std::vector<std::pair<LogLevel, std::string>> lines_;
};

TEST_F(LogTest, OffBelowWarningByDefault) {
  capture();
  log_debug("a {}", 1);
  log_info("b");
  log_warning("c {}", 2);
  log_error("d");
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[0], std::make_pair(LogLevel::kWarning, std::string("c 2")));
  EXPECT_EQ(lines_[1], std::make_pair(LogLevel::kError, std::string("d")));
}

TEST_F(LogTest, LevelsCanBeChosen) {
  capture();
  set_log_level(LogLevel::kDebug);
  log_debug("{} braces {{}}", "all");
  set_log_level(LogLevel::kOff);
  log_error("nothing");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].second, "all braces {}");
  EXPECT_FALSE(log_enabled(LogLevel::kOff));
}

TEST_F(LogTest, NamesAreParsed) {
  EXPECT_EQ(*parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_EQ(*parse_log_level("off"), LogLevel::kOff);
  const auto bad = parse_log_level("loud");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kInvalidArgument);
  EXPECT_NE(bad.error().message.find("'loud'"), std::string::npos);
}

TEST_F(LogTest, StandardErrorGetsOneLine) {
  testing::internal::CaptureStderr();
  set_log_sink({});
  log_warning("the disk is {} full", "nearly");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "syrinx: warning: the disk is nearly full\n");
}

TEST_F(LogTest, ThreadsMayLogWhileTheSinkChanges) {
  capture();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) log_warning("line {}", i);
    });
  }
  for (int i = 0; i < 20; ++i) set_log_sink([](LogLevel, std::string_view) {});
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace syrinx
