#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "temp_folder.h"

namespace syrinx {
namespace {

std::string_view text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ShowsTheContent) {
  const TempFolder folder;
  write_text(folder.file("a"), "hello");
  const auto file = MappedFile::open(folder.file("a"));
  ASSERT_TRUE(file);
  EXPECT_EQ(text(*file), "hello");
  EXPECT_EQ(file->path(), folder.file("a"));
}

TEST(MappedFile, EmptyFileHasNoBytes) {
  const TempFolder folder;
  write_text(folder.file("a"), "");
  const auto file = MappedFile::open(folder.file("a"));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
  file->release();
}

TEST(MappedFile, MovesAndSurvivesTheDescriptor) {
  const TempFolder folder;
  write_text(folder.file("a"), "first");
  write_text(folder.file("b"), "second");
  const int descriptor = open(folder.file("a").c_str(), O_RDONLY);
  auto a = MappedFile::from_descriptor(descriptor, "the first");
  close(descriptor);
  ASSERT_TRUE(a);
  auto b = MappedFile::open(folder.file("b"));
  ASSERT_TRUE(b);
  MappedFile c = std::move(*a);
  EXPECT_TRUE(a->bytes().empty());
  c = std::move(*b);
  EXPECT_EQ(text(c), "second");
  EXPECT_FALSE(MappedFile::from_descriptor(-1, "closed"));
}

TEST(MappedFile, RemovedFileStaysReadable) {
  const TempFolder folder;
  write_text(folder.file("a"), "kept");
  const auto file = MappedFile::open(folder.file("a"));
  ASSERT_TRUE(file);
  unlink(folder.file("a").c_str());
  EXPECT_EQ(text(*file), "kept");
}

TEST(MappedFile, ReleaseKeepsTheContent) {
  const TempFolder folder;
  std::string content;
  for (int i = 0; content.size() < 300001; ++i) content += std::to_string(i);
  write_text(folder.file("a"), content);
  const auto file = MappedFile::open(folder.file("a"));
  ASSERT_TRUE(file);
  for (size_t offset : {size_t{0}, size_t{1}, size_t{4096}, size_t{299999}, content.size(), content.size() + 9999}) {
    for (size_t size : {size_t{0}, size_t{5}, size_t{4096}, size_t{100000}, ~size_t{0}}) file->release(offset, size);
  }
  EXPECT_EQ(text(*file), content);
}

TEST(MappedFile, BorrowedMemoryIsLeftAlone) {
  std::string memory(50000, 'm');
  {
    const auto file = MappedFile::borrow(std::as_bytes(std::span(memory)), "memory");
    EXPECT_EQ(text(file), memory);
    file.release();
    EXPECT_EQ(file.path(), "memory");
  }
  EXPECT_EQ(memory, std::string(50000, 'm'));
}

TEST(MappedFile, ErrorsNameTheFile) {
  const TempFolder folder;
  const auto missing = MappedFile::open(folder.file("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find("none"), std::string::npos);
  const auto directory = MappedFile::open(folder.path());
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, Code::kIo);
  EXPECT_NE(directory.error().message.find("folder"), std::string::npos);
  ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
  const auto pipe = MappedFile::open(folder.file("pipe"));  // must not wait for a writer
  ASSERT_FALSE(pipe);
  EXPECT_EQ(pipe.error().code, Code::kIo);
  write_text(folder.file("file"), "x");
  EXPECT_EQ(MappedFile::open(folder.file("file/below")).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace syrinx
