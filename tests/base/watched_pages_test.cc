#include "base/watched_pages.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/mapped_file.h"
#include "temp_folder.h"

namespace syrinx {
namespace {

const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

size_t count_of(std::span<const std::byte> bytes, char value) {
  return static_cast<size_t>(std::ranges::count(bytes, static_cast<std::byte>(value)));
}

MappedFile make_file(const std::string& path) {
  write_text(path, std::string(2 * kPage, 'x'));
  return *MappedFile::open(path);
}

// All are of the suite that the stage arm64 leaves out: amid threads, a SIGBUS can hang in its emulator.
TEST(WatchedPagesDeathTest, UnwatchedPageStillKillsTheProcess) {
  catch_missing_pages();
  const TempFolder folder;
  const MappedFile unwatched = make_file(folder.file("unwatched"));
  std::filesystem::resize_file(folder.file("unwatched"), 0);
  EXPECT_DEATH(EXPECT_EQ(count_of(unwatched.bytes(), 'x'), 0u), "");
}

TEST(WatchedPagesDeathTest, ASignalThatIsSentEndsAsEver) {
  catch_missing_pages();
  const TempFolder folder;
  const MappedFile file = make_file(folder.file("a"));
  const WatchedPages watched(file.bytes());
  EXPECT_DEATH(raise(SIGBUS), "");
  EXPECT_TRUE(watched.check("a"));
}

TEST(WatchedPagesDeathTest, ThoseThatAreGoneAreZerosAndAFault) {
  catch_missing_pages();
  catch_missing_pages();
  const TempFolder folder;
  for (const size_t left : {size_t{0}, size_t{10}, kPage, 2 * kPage + 1, 4 * kPage}) {
    write_text(folder.file("a"), std::string(5 * kPage - 7, 'x'));
    const auto file = MappedFile::open(folder.file("a"));
    ASSERT_TRUE(file);
    const WatchedPages watched(file->bytes());
    EXPECT_EQ(count_of(file->bytes(), 'x'), 5 * kPage - 7);
    EXPECT_TRUE(watched.check("a"));
    std::filesystem::resize_file(folder.file("a"), left);
    EXPECT_EQ(count_of(file->bytes(), 'x'), left);
    EXPECT_EQ(count_of(file->bytes(), 0), 5 * kPage - 7 - left);
    const Status status = watched.check("a");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kDataLoss);
    EXPECT_NE(status.error().message.find("'a' became shorter"), std::string::npos);
    file->release();
    EXPECT_EQ(count_of(file->bytes(), 'x'), left);
  }
}

// Each of its own file, and more of them than can be watched, one after the other.
TEST(WatchedPagesDeathTest, AreThoseOfTheFileThatWasShortened) {
  catch_missing_pages();
  const TempFolder folder;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const MappedFile cut = make_file(folder.file("cut" + std::to_string(i))),
                       whole = make_file(folder.file("whole" + std::to_string(i)));
      for (size_t round = 0; round < WatchedPages::kMost; ++round) {
        const WatchedPages of_cut(cut.bytes()), of_whole(whole.bytes());
        std::filesystem::resize_file(folder.file("cut" + std::to_string(i)), kPage);
        EXPECT_EQ(count_of(cut.bytes(), 'x'), kPage);
        EXPECT_EQ(count_of(whole.bytes(), 'x'), 2 * kPage);
        EXPECT_EQ(of_cut.check("cut").has_value(), round > 0);  // by then they are zeros
        EXPECT_TRUE(of_whole.check("whole"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace syrinx
