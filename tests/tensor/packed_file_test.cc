#include "tensor/packed_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace syrinx {
namespace {

class PackedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "packed-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/weights.packed";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  PackedFile write(const std::string& key) {
    auto writer = PackedFileWriter::create(path_, key);
    EXPECT_TRUE(writer.has_value());
    EXPECT_TRUE(writer->add_array<float>("a", floats_).has_value());
    EXPECT_TRUE(writer->add_array<int32_t>("empty", std::span<const int32_t>()).has_value());
    auto file = writer->finish();
    EXPECT_TRUE(file.has_value()) << file.error().message;
    return std::move(*file);
  }
  Result<PackedFile> read(const std::string& key) {
    auto mapped = MappedFile::open(path_);
    if (!mapped) return tl::unexpected(mapped.error());
    return PackedFile::open(std::move(*mapped), key);
  }

  const std::vector<float> floats_ = {1.0f, -2.0f, 3.5f};
  std::string folder_, path_;
};

TEST_F(PackedFileTest, ReturnsTheWrittenArrays) {
  write("key 1");
  const auto file = read("key 1");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto a = file->array<float>("a");
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(std::vector<float>(a->begin(), a->end()), floats_);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a->data()) % 64, 0u);
  EXPECT_TRUE(file->array<int32_t>("empty")->empty());
  EXPECT_EQ(file->find("b").error().code, Code::kDataLoss);
  EXPECT_EQ(file->array<uint64_t>("a").error().code, Code::kDataLoss);
}

TEST_F(PackedFileTest, RefusesAnotherKeyAndEveryCutOrFlippedIndex) {
  write("key 1");
  EXPECT_EQ(read("key 2").error().code, Code::kDataLoss);
  std::ifstream in(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto rewrite = [&](const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; };
  for (size_t length = 0; length < whole.size(); ++length) {
    rewrite(whole.substr(0, length));
    ASSERT_FALSE(read("key 1").has_value()) << length;
  }
  // Arrays have checksums of their own; header and index are looked at first.
  uint64_t index = 0;
  std::memcpy(&index, whole.data() + 16, sizeof index);
  for (size_t at = 0; at < whole.size(); ++at) {
    if (at >= 200 && at < index) continue;
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    rewrite(damaged);
    const auto file = read("key 1");
    // Bytes behind the end of the key are never looked at.
    ASSERT_TRUE(!file.has_value() || (at > 45 && at < 200)) << "byte " << at << " changed unnoticed";
  }
  rewrite(whole);
  EXPECT_TRUE(read("key 1").has_value());
}

TEST_F(PackedFileTest, EveryFlippedByteOfAnArrayIsSeen) {
  write("key 1");
  std::ifstream in(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  auto file = read("key 1");
  ASSERT_TRUE(file->check_all().has_value());
  ASSERT_TRUE(file->check("a").has_value());
  EXPECT_EQ(file->check("b").error().code, Code::kDataLoss);
  const auto copied = file->copy("a");
  ASSERT_TRUE(copied.has_value());
  EXPECT_NE(copied->data(), file->find("a")->data());
  EXPECT_EQ(std::memcmp(copied->data(), floats_.data(), copied->size()), 0);
  file->trim_copies();
  EXPECT_EQ(std::memcmp(copied->data(), floats_.data(), copied->size()), 0) << "what is used stays";
  const size_t array = whole.find(std::string(reinterpret_cast<const char*>(floats_.data()), 12));
  ASSERT_NE(array, std::string::npos);
  for (size_t i = 0; i < 12; ++i) {
    std::string damaged = whole;
    damaged[array + i] = static_cast<char>(damaged[array + i] ^ 1);
    std::ofstream(path_, std::ios::binary) << damaged;
    auto open = read("key 1");
    ASSERT_TRUE(open.has_value());
    EXPECT_EQ(open->check("a").error().code, Code::kDataLoss);
    EXPECT_EQ(open->check_all().error().code, Code::kDataLoss);
    EXPECT_EQ(open->copy("a").error().code, Code::kDataLoss);
  }
}

// Bytes of a mapped file that are in this process's memory, by the kernel's list of mappings.
size_t resident_bytes(const std::string& path) {
  std::ifstream in("/proc/self/smaps");
  size_t sum_kb = 0, kb = 0;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.find('-') < line.find(' '))
      inside = line.ends_with(path);  // "55b578bcf000-55b578bd3000 r--p ...", a mapping
    if (inside && std::sscanf(line.c_str(), "Rss: %zu kB", &kb) == 1) sum_kb += kb;
  }
  return sum_kb * 1024;
}

TEST_F(PackedFileTest, CheckedPagesLeaveMemory) {
  constexpr size_t kArrayBytes = size_t{1} << 20;
  const std::vector<std::byte> zeros(kArrayBytes);
  auto writer = PackedFileWriter::create(path_, "key");
  ASSERT_TRUE(writer.has_value());
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(writer->add(name, zeros).has_value());
  ASSERT_TRUE(writer->finish().has_value());
  const auto file = read("key");
  ASSERT_TRUE(file.has_value());
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(file->check(name).has_value());
  EXPECT_GE(resident_bytes(path_), 3 * kArrayBytes) << "check() leaves what it read";
  ASSERT_TRUE(file->check_all().has_value());
  EXPECT_EQ(resident_bytes(path_), 0u);
}

TEST_F(PackedFileTest, CopiesAreAmongTheKeptPages) {
  write("key");
  auto file = read("key");
  ASSERT_TRUE(file && file->copy("a"));
  EXPECT_EQ(read_kept_pages().pages, 0U) << "more copies may come";
  file->trim_copies();
  const PackedFile moved = std::move(*file);
  EXPECT_EQ(read_kept_pages().pages, 1U);
}

TEST_F(PackedFileTest, AnUnfinishedWriteLeavesNothing) {
  {
    auto writer = PackedFileWriter::create(path_, "key");
    ASSERT_TRUE(writer.has_value());
    ASSERT_TRUE(writer->add_array<float>("a", floats_).has_value());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(PackedFileTest, MemoryNeedsNoFile) {
  path_.clear();
  const PackedFile file = write("key");
  EXPECT_EQ(file.array<float>("a")->size(), 3u);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(PackedFileTest, ReportsAFolderThatIsNotThere) {
  EXPECT_EQ(PackedFileWriter::create(folder_ + "/none/x", "key").error().code, Code::kIo);
}

TEST_F(PackedFileTest, LimitsNames) {
  auto writer = PackedFileWriter::create("", "key");
  EXPECT_EQ(writer->add_array<float>(std::string(200, 'n'), floats_).error().code, Code::kLimitExceeded);
}

}  // namespace
}  // namespace syrinx
