#include "base/scoped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "base/signals.h"
#include "temp_folder.h"

namespace syrinx {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

TEST(ScopedFile, AppearsWholeOnCommit) {
  const TempFolder folder;
  auto file = ScopedFile::create(folder.file("out"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("hello "));
  ASSERT_TRUE(file->write("world"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("out")));
  EXPECT_TRUE(file->seekable());
  ASSERT_TRUE(file->write_at(0, bytes("HELLO")));
  EXPECT_EQ(file->size_bytes(), 11u);
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_text(folder.file("out")), "HELLO world");
  EXPECT_EQ(folder.entries(), 1u);
  EXPECT_FALSE(file->write("more"));
  EXPECT_FALSE(file->commit());
}

TEST(ScopedFile, LeavesNothingWhenAbandoned) {
  const TempFolder folder;
  write_text(folder.file("out"), "old");
  {
    auto file = ScopedFile::create(folder.file("out"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("half"));
    EXPECT_EQ(folder.entries(), 2u);
  }
  EXPECT_EQ(folder.entries(), 1u);
  EXPECT_EQ(read_text(folder.file("out")), "old");
}

TEST(ScopedFile, ReplacesAndKeepsTheMode) {
  const TempFolder folder;
  write_text(folder.file("out"), "old content");
  ASSERT_EQ(chmod(folder.file("out").c_str(), 0640), 0);
  auto file = ScopedFile::create(folder.file("out"));
  ASSERT_TRUE(file && file->write("new") && file->commit());
  EXPECT_EQ(read_text(folder.file("out")), "new");
  struct stat info {};
  ASSERT_EQ(stat(folder.file("out").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(ScopedFile, NewFileObeysTheMask) {
  const TempFolder folder;
  const mode_t before = umask(027);
  auto file = ScopedFile::create(folder.file("out"));
  umask(before);
  ASSERT_TRUE(file && file->commit());
  struct stat info {};
  ASSERT_EQ(stat(folder.file("out").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(ScopedFile, LinkStaysALink) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("deep"));
  write_text(folder.file("deep/real"), "old");
  std::filesystem::create_symlink("deep/real", folder.file("link"));
  auto file = ScopedFile::create(folder.file("link"));
  ASSERT_TRUE(file && file->write("new") && file->commit());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_text(folder.file("deep/real")), "new");
}

TEST(ScopedFile, MovesOwnership) {
  const TempFolder folder;
  auto a = ScopedFile::create(folder.file("a"));
  auto b = ScopedFile::create(folder.file("b"));
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(a->write("from a"));
  *b = std::move(*a);  // the unfinished b goes away
  EXPECT_EQ(folder.entries(), 1u);
  EXPECT_FALSE(a->commit());
  ScopedFile c = std::move(*b);
  ASSERT_TRUE(c.commit());
  EXPECT_EQ(read_text(folder.file("a")), "from a");
}

TEST(ScopedFile, RelativeNameInTheCurrentFolder) {
  const TempFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  auto file = ScopedFile::create("plain");
  const bool written = file && file->write("x") && file->commit();
  std::filesystem::current_path(before);
  EXPECT_TRUE(written);
  EXPECT_EQ(read_text(folder.file("plain")), "x");
}

TEST(ScopedFile, WriteAtStaysInside) {
  const TempFolder folder;
  auto file = ScopedFile::create(folder.file("a"));
  ASSERT_TRUE(file && file->write("12345"));
  EXPECT_FALSE(file->write_at(3, bytes("abc")));
  EXPECT_FALSE(file->write_at(~uint64_t{0}, bytes("a")));
  EXPECT_TRUE(file->write_at(3, bytes("ab")));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_text(folder.file("a")), "123ab");
}

void expect_error(const Error& error, Code code, std::string_view part) {
  EXPECT_EQ(error.code, code) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

TEST(ScopedFile, ErrorsNameTheThingAndTheRemedy) {
  const TempFolder folder;
  expect_error(ScopedFile::create("").error(), Code::kInvalidArgument, "empty");
  expect_error(ScopedFile::create(folder.path()).error(), Code::kIo, "it is a folder");
  expect_error(ScopedFile::create(folder.file("no/out.wav")).error(), Code::kIo, "make it first");
  expect_error(ScopedFile::create(folder.file(std::string(300, 'n'))).error(), Code::kIo, "shorter name");
  write_text(folder.file("plain"), "x");
  expect_error(ScopedFile::create(folder.file("plain/out.wav")).error(), Code::kIo, "plain");
  expect_error(ScopedFile::create("/proc/syrinx-test").error(), Code::kIo, "/proc/syrinx-test");
}

TEST(ScopedFile, FullDisk) {
  auto file = ScopedFile::create("/dev/full");  // a device is written in place
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->seekable());
  const auto status = file->write("anything");
  ASSERT_FALSE(status);
  expect_error(status.error(), Code::kIo, "make room");
  EXPECT_FALSE(file->write("more"));
  EXPECT_FALSE(file->commit());
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
}

TEST(ScopedFile, FileSizeLimitIsAnError) {
  const TempFolder folder;
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 100, before.rlim_max };
  setrlimit(RLIMIT_FSIZE, &small);
  auto file = ScopedFile::create(folder.file("out"));
  Status status;
  if (file) status = file->write(std::string(1000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(file);
  ASSERT_FALSE(status);
  expect_error(status.error(), Code::kIo, "out");
  EXPECT_FALSE(file->commit());
  *file = ScopedFile();
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(ScopedFile, DeviceIsNotReplaced) {
  auto file = ScopedFile::create("/dev/null");
  ASSERT_TRUE(file && file->write("gone") && file->commit());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(ScopedFile, PipeIsWrittenAndAClosedOneIsAnError) {
  install_signal_handlers();
  const TempFolder folder;
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const int reader = open(folder.file("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto file = ScopedFile::create(folder.file("pipe"));
  ASSERT_TRUE(file && file->write("through"));
  EXPECT_FALSE(file->seekable());
  char got[8] = {};
  EXPECT_EQ(read(reader, got, sizeof got), 7);
  EXPECT_STREQ(got, "through");
  close(reader);
  const auto status = file->write("nobody");
  ASSERT_FALSE(status);
  expect_error(status.error(), Code::kIo, "reader has gone");
}

TEST(ScopedFile, SignalEndsAWaitForAPipe) {
  clear_cancel();
  install_signal_handlers();
  const TempFolder folder;
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const pthread_t waiting = pthread_self();
  std::atomic<bool> done{false};
  std::thread sender([&] {
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (done) break;
      clear_cancel();
      install_signal_handlers();
      pthread_kill(waiting, SIGINT);
      while (!cancel_requested()) std::this_thread::yield();  // one at a time, as in signals_test.cc
    }
  });
  const auto file = ScopedFile::create(folder.file("pipe"));  // no reader: open() blocks
  done = true;
  sender.join();
  clear_cancel();
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace syrinx
