#include "tensor/zip.h"

#include <functional>

#include "files.h"
#include "stored_zip.h"

namespace syrinx {
namespace {

using Maker = test::StoredZip;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Zip, ReadsArchivesWrittenAtOnceAndAsAStream) {
  for (const char* name : {"seekable.zip", "streamed.zip"}) {
    SCOPED_TRACE(name);
    const std::string bytes = test::read_data(name);
    EXPECT_TRUE(ZipArchive::looks_like(test::as_bytes(bytes)));
    const auto archive = ZipArchive::parse(test::as_bytes(bytes), name);
    ASSERT_TRUE(archive.has_value()) << archive.error().message;
    ASSERT_EQ(archive->members().size(), 3u);
    std::string alpha;
    for (int i = 0; i < 20; ++i) alpha += "alpha ";
    const ZipMember* const first = archive->find("a.txt");
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(text_of(*archive->extract(*first, 1000)), alpha);
    EXPECT_EQ(archive->stored(*first).error().code, Code::kUnsupported);
    EXPECT_EQ(archive->extract(*first, 119).error().code, Code::kLimitExceeded);
    const ZipMember* const second = archive->find("dir/b.bin");
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(archive->stored(*second)->size(), 256u);
    EXPECT_EQ(archive->extract(*second, 256)->size(), 256u);
    EXPECT_TRUE(archive->extract(*archive->find("empty"), 0)->empty());
    EXPECT_EQ(archive->find("zzz"), nullptr);
  }
}

TEST(Zip, RefusesMalformedArchives) {
  struct Case {
    const char* says;
    Code code;
    std::function<void(Maker&)> spoil;
  };
  const Case cases[] = {
      {"several parts", Code::kUnsupported, [](Maker& m) { m.disk = 1; }},
      {"outside", Code::kDataLoss, [](Maker& m) { m.directory_offset_shift = 1000; }},
      {"malformed", Code::kDataLoss, [](Maker& m) { m.directory_offset_shift = static_cast<uint32_t>(-1); }},
      {"malformed", Code::kDataLoss, [](Maker& m) { m.entries = 3; }},
      {"encrypted", Code::kUnsupported, [](Maker& m) { m.members[0].flags = 1; }},
      {"twice", Code::kDataLoss, [](Maker& m) { m.members[1].name = "first"; }},
      {"damaged", Code::kDataLoss, [](Maker& m) { m.members[0].local_name = "frist"; }},
      {"damaged", Code::kDataLoss, [](Maker& m) { m.members[0].offset = 1; }},
      {"damaged", Code::kDataLoss, [](Maker& m) { m.members[0].offset = 100000; }},
      {"damaged", Code::kDataLoss, [](Maker& m) { m.members[1].claimed = 100000; }},
      {"overlap", Code::kDataLoss, [](Maker& m) { m.members[0].claimed = 20; }},
      {"no proper name", Code::kDataLoss, [](Maker& m) { m.members[0].name = std::string("fi\0st", 5); }},
      {"no proper name", Code::kDataLoss, [](Maker& m) { m.members[0].name = std::string(2000, 'a'); }},
      {"no proper name", Code::kDataLoss, [](Maker& m) { m.members[0].name.clear(); }},
  };
  for (const Case& hostile : cases) {
    Maker maker{.members = {{.name = "first", .data = "0123"}, {.name = "second", .data = "456"}}};
    ASSERT_TRUE(ZipArchive::parse(test::as_bytes(maker.make()), "good").has_value());
    hostile.spoil(maker);
    const std::string bytes = maker.make();
    const auto archive = ZipArchive::parse(test::as_bytes(bytes), "hostile");
    ASSERT_FALSE(archive.has_value()) << hostile.says;
    EXPECT_EQ(archive.error().code, hostile.code) << archive.error().message;
    EXPECT_NE(archive.error().message.find(hostile.says), std::string::npos) << archive.error().message;
  }
  EXPECT_EQ(ZipArchive::parse({}, "empty").error().code, Code::kDataLoss);
}

TEST(Zip, RefusesFalseSizesChecksumsAndMethodsOnExtraction) {
  const auto first_error = [](Maker::Member member) {
    const std::string bytes = Maker{.members = {std::move(member)}}.make();
    const auto archive = ZipArchive::parse(test::as_bytes(bytes), "hostile");
    EXPECT_TRUE(archive.has_value());
    return archive->extract(archive->members()[0], size_t{1} << 40).error().code;
  };
  EXPECT_EQ(first_error({.name = "crc", .data = "abc", .crc = 1}), Code::kDataLoss);
  EXPECT_EQ(first_error({.name = "noise", .data = "\xff\xff\xff", .method = 8, .claimed = 100}), Code::kDataLoss);
  EXPECT_EQ(first_error({.name = "bomb", .data = "abc", .method = 8, .claimed = 0xf0000000}), Code::kDataLoss);
  EXPECT_EQ(first_error({.name = "bzip", .data = "abc", .method = 12}), Code::kUnsupported);
}

TEST(Zip, FindsTheEndBehindAComment) {
  Maker maker{.members = {{.name = "first", .data = "0123"}}, .comment = std::string(65535, 'c')};
  EXPECT_TRUE(ZipArchive::parse(test::as_bytes(maker.make()), "comment").has_value());
  maker.comment.push_back('c');  // its length no longer fits
  EXPECT_FALSE(ZipArchive::parse(test::as_bytes(maker.make()), "comment").has_value());
}

// A zip64 end record before a plain one that only says "see there".
std::string with_end64(uint64_t entries, uint64_t size, uint64_t offset, uint64_t record_at, uint32_t disk = 0,
                       uint32_t signature = 0x06064b50) {
  const std::string plain = Maker{.members = {{.name = "first", .data = "0123"}}}.make();
  std::string out = plain.substr(0, plain.size() - 22);
  Maker::put<uint32_t>(out, signature);
  Maker::put<uint64_t>(out, 44);
  Maker::put<uint32_t>(out, 0);
  Maker::put<uint32_t>(out, disk);
  Maker::put<uint32_t>(out, disk);
  Maker::put<uint64_t>(out, entries);
  Maker::put<uint64_t>(out, entries);
  Maker::put<uint64_t>(out, size);
  Maker::put<uint64_t>(out, offset);
  Maker::put<uint32_t>(out, 0x07064b50);
  Maker::put<uint32_t>(out, 0);
  Maker::put<uint64_t>(out, record_at);
  Maker::put<uint32_t>(out, 1);
  std::string end = plain.substr(plain.size() - 22);
  std::fill(end.begin() + 8, end.begin() + 20, '\xff');
  return out + end;
}

TEST(Zip, FollowsZip64Records) {
  // Local header 30 + name 5 + data 4 = 39; directory entry 46 + 5 = 51; so the record stands at 90.
  EXPECT_TRUE(ZipArchive::parse(test::as_bytes(with_end64(1, 51, 39, 90)), "wide").has_value());
  const auto code = [](const std::string& bytes) {
    return ZipArchive::parse(test::as_bytes(bytes), "wide").error().code;
  };
  EXPECT_EQ(code(with_end64(1, 51, 39, 9000)), Code::kDataLoss);
  EXPECT_EQ(code(with_end64(1, 51, 39, 91)), Code::kDataLoss);
  EXPECT_EQ(code(with_end64(1, 51, 39, 90, 0, 7)), Code::kDataLoss);
  EXPECT_EQ(code(with_end64(1, 51, 39, 90, 1)), Code::kUnsupported);
  EXPECT_EQ(code(with_end64(1, 51, UINT64_MAX, 90)), Code::kDataLoss);
  EXPECT_EQ(code(with_end64(1, UINT64_MAX, 39, 90)), Code::kDataLoss);
  EXPECT_EQ(code(with_end64(UINT64_MAX, 51, 39, 90)), Code::kLimitExceeded);
}

TEST(Zip, SurvivesEveryTruncationAndFlip) {
  const auto read = [](std::span<const std::byte> bytes) {
    const auto archive = ZipArchive::parse(bytes, "hostile");
    if (archive)
      for (const ZipMember& member : archive->members()) (void)archive->extract(member, 1 << 20);
  };
  test::sweep_hostile(test::read_data("seekable.zip"), read);
  test::sweep_hostile(test::read_data("streamed.zip"), read);
  test::sweep_hostile(with_end64(1, 51, 39, 90), read);
}

}  // namespace
}  // namespace syrinx
