#include "tensor/content_key.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/sha256.h"

namespace syrinx {
namespace {

class ContentKey : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "key-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/model";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& content) { std::ofstream(path_, std::ios::binary | std::ios::trunc) << content; }
  std::string key(const std::string& cache) {
    const auto file = MappedFile::open(path_);
    EXPECT_TRUE(file.has_value());
    return content_key(*file, cache);
  }
  static std::string digest(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

  std::string folder_, path_;
};

TEST_F(ContentKey, IsTheDigestWithAndWithoutAStamp) {
  write("some weights");
  EXPECT_EQ(key(""), digest("some weights"));
  EXPECT_EQ(key(folder_), digest("some weights"));
  EXPECT_EQ(key(folder_), digest("some weights"));
  EXPECT_EQ(key(folder_ + "/not there"), digest("some weights"));
}

TEST_F(ContentKey, SeesAFileThatChanged) {
  write("some weights");
  key(folder_);
  write("other weight");
  std::filesystem::last_write_time(path_, std::filesystem::last_write_time(path_) + std::chrono::seconds(2));
  EXPECT_EQ(key(folder_), digest("other weight"));
}

TEST_F(ContentKey, SeesChangesWithARestoredTime) {
  write("some weights");
  key(folder_);
  const auto written = std::filesystem::last_write_time(path_);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // file systems count time in ticks of up to 10 ms
  write("other weight");
  std::filesystem::last_write_time(path_, written);
  EXPECT_EQ(key(folder_), digest("other weight"));
}

TEST_F(ContentKey, ADamagedStampIsMadeAgain) {
  write("some weights");
  key(folder_);
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    if (entry.path().extension() == ".stamp") std::ofstream(entry.path(), std::ios::trunc) << "nonsense";
  EXPECT_EQ(key(folder_), digest("some weights"));
}

}  // namespace
}  // namespace syrinx
