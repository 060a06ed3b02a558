#include "base/watched_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "temp_folder.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

class WatchedFileTest : public testing::Test {
 protected:
  void SetUp() override { write_text(path_, std::string(kBytes, 'x')); }
  std::string fault(const WatchedFile& file) const { return fault(file.check()); }
  std::string fault(const Status& status) const {
    if (status) return "";
    EXPECT_EQ(status.error().code, Code::kDataLoss);
    EXPECT_NE(status.error().message.find("'" + path_ + "'"), std::string::npos) << status.error().message;
    return status.error().message;
  }
  // In place, as `cp` does.
  void write_in_place(const std::string& text) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file << text;
  }

  static constexpr size_t kBytes = 10000;  // ends within a page
  const TempFolder folder_;
  const std::string path_ = folder_.file("a");
};

TEST_F(WatchedFileTest, UntouchedFileIsUnchanged) {
  auto opened = WatchedFile::open(path_);
  ASSERT_TRUE(opened) << opened.error().message;
  const WatchedFile file = std::move(*opened);
  ASSERT_EQ(file.bytes().size(), kBytes);
  EXPECT_EQ(file.bytes()[kBytes - 1], std::byte{'x'});
  file.release();
  EXPECT_EQ(file.bytes()[0], std::byte{'x'});
  EXPECT_EQ(fault(file), "");
}

// No page is missing, so that nothing tells of it while it is read.
TEST_F(WatchedFileTest, TruncationWithinAPageIsReported) {
  const auto file = WatchedFile::open(path_);
  ASSERT_TRUE(file);
  fs::resize_file(path_, kBytes - 1);
  EXPECT_NE(fault(*file).find("became shorter"), std::string::npos);
}

TEST_F(WatchedFileTest, OneThatIsWrittenAnewIsNotTheOneThatWasOpened) {
  const auto file = WatchedFile::open(path_);
  ASSERT_TRUE(file);
  write_in_place(std::string(kBytes, 'y'));
  fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(1));  // whatever the clock's tick
  EXPECT_NE(fault(*file).find("was written while it was read"), std::string::npos);
}

TEST_F(WatchedFileTest, AppendingIsNoFault) {
  const auto file = WatchedFile::open(path_);
  ASSERT_TRUE(file);
  std::ofstream(path_, std::ios::app) << "more";
  fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(1));
  EXPECT_EQ(fault(*file), "");
  EXPECT_EQ(file->bytes().size(), kBytes);
}

// Whether what was there is the same cannot be told from that.
TEST_F(WatchedFileTest, CheckAllForbidsGrowth) {
  const auto file = WatchedFile::open(path_);
  ASSERT_TRUE(file);
  EXPECT_EQ(fault(file->check_all()), "");
  write_text(path_, std::string(kBytes + 1, 'y'));
  EXPECT_NE(fault(file->check_all()).find("was written while it was read"), std::string::npos);
}

// Whoever writes with care puts a new file in its place; what was opened is still all there.
TEST_F(WatchedFileTest, OneThatIsReplacedIsReadToItsEnd) {
  const auto file = WatchedFile::open(path_);
  ASSERT_TRUE(file);
  write_text(folder_.file("b"), "another one");
  fs::rename(folder_.file("b"), path_);
  EXPECT_EQ(fault(*file), "");
  EXPECT_EQ(file->bytes()[kBytes - 1], std::byte{'x'});
}

TEST_F(WatchedFileTest, OpenReportsErrors) {
  EXPECT_EQ(WatchedFile::open(folder_.file("none")).error().code, Code::kNotFound);
  EXPECT_EQ(WatchedFile::open(folder_.path()).error().code, Code::kIo);
  write_text(path_, "");
  const auto empty = WatchedFile::open(path_);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
  EXPECT_EQ(fault(*empty), "");
}

}  // namespace
}  // namespace syrinx
