#include "tensor/tar.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "tensor/gzip.h"

namespace syrinx {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The checksum of a header, in its place.
void sign(std::string& header) {
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<uint8_t>(header[i]);
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
}

// One member: header, content, padding.
std::string entry(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(124, 11, fmt::format("{:011o}", content.size()));
  header[156] = type;
  header.replace(257, 8, std::string("ustar\00000", 8));
  sign(header);
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}
const std::string kEnd(1024, '\0');

Code code_of(const std::string& archive) {
  const auto parsed = TarArchive::parse(as_bytes(archive), "t.nemo");
  return parsed ? Code::kInternal : parsed.error().code;
}

TEST(Tar, GivesMembersInPlace) {
  const std::string archive = entry("./", "", '5') + entry("./a.yaml", "first") + entry("b/c", std::string(600, 'x')) +
                              entry("empty", "") + kEnd;
  const auto parsed = TarArchive::parse(as_bytes(archive), "t.nemo");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  ASSERT_EQ(parsed->members().size(), 3u);
  ASSERT_NE(parsed->find("a.yaml"), nullptr);
  EXPECT_EQ(text_of(parsed->find("a.yaml")->bytes), "first");
  EXPECT_EQ(parsed->find("b/c")->bytes.size(), 600u);
  EXPECT_EQ((parsed->find("b/c")->bytes.data() - as_bytes(archive).data()) % 512, 0);
  EXPECT_EQ(parsed->find("c"), nullptr);
  // The zero blocks at the end may be missing.
  EXPECT_TRUE(TarArchive::parse(as_bytes(entry("a", "1")), "t").has_value());
}

TEST(Tar, ReadsLongNamesAndSizes) {
  const std::string name(150, 'n');
  const std::string record = fmt::format("{} path={}\n", 6 + name.size() + 4, name);
  ASSERT_EQ(record.size(), 160u);
  for (const std::string& archive : {entry("x", record, 'x') + entry("short", "content"),
                                     entry("@LongLink", name + '\0', 'L') + entry("short", "content")}) {
    const auto parsed = TarArchive::parse(as_bytes(archive), "t");
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    ASSERT_EQ(parsed->members().size(), 1u);
    EXPECT_EQ(parsed->members()[0].name, name);
  }
  std::string prefixed = entry("file", "content");
  prefixed.replace(345, 6, "folder");
  sign(prefixed);
  EXPECT_NE(TarArchive::parse(as_bytes(prefixed), "t")->find("folder/file"), nullptr);
  // pax gives the size where the header cannot; here it says less than the header.
  const std::string sizes = entry("x", "9 size=3\n", 'x') + entry("a", "content");
  const auto sized = TarArchive::parse(as_bytes(sizes), "t");
  ASSERT_TRUE(sized.has_value()) << sized.error().message;
  EXPECT_EQ(text_of(sized->members()[0].bytes), "con");
}

TEST(Tar, RefusesMisleadingEntries) {
  for (const char* name : {"../a", "/etc/passwd", "a/../../b", "..", "./../a"})
    EXPECT_EQ(code_of(entry(name, "x") + kEnd), Code::kDataLoss) << name;
  EXPECT_EQ(code_of(entry("a", "x") + entry("./a", "y")), Code::kDataLoss);
  EXPECT_EQ(code_of(entry("a", "", '2')), Code::kUnsupported);
  EXPECT_EQ(code_of(entry("a", "", '1')), Code::kUnsupported);
  EXPECT_EQ(code_of(entry("a", "", '3')), Code::kUnsupported);
  EXPECT_EQ(code_of(entry("", "x")), Code::kDataLoss);
  const std::string whole = entry("a", std::string(2000, 'x'));
  EXPECT_EQ(code_of(whole.substr(0, 1024)), Code::kDataLoss);
  EXPECT_EQ(code_of(whole + "half a header"), Code::kDataLoss);
  std::string damaged = whole;
  damaged[3] = 'q';
  EXPECT_EQ(code_of(damaged), Code::kDataLoss);
  EXPECT_EQ(code_of("no archive"), Code::kDataLoss);
  for (const char* record : {"9999 path=a\n", "x path=a\n", "11 path=abc\n", "8 patha\n", "9 size=x\n"})
    EXPECT_EQ(code_of(entry("x", record, 'x') + entry("a", "")), Code::kDataLoss) << record;
  EXPECT_EQ(code_of(entry("x", "26 size=99999999999999999\n", 'x') + entry("a", "")), Code::kDataLoss);
  EXPECT_EQ(code_of(entry("x", "21 GNU.sparse.major=1\n", 'x').replace(512, 2, "22") + entry("a", "")),
            Code::kUnsupported);
  std::string many;
  for (size_t i = 0; i <= TarArchive::kMaxMembers; ++i) many += entry(std::to_string(i), "");
  EXPECT_EQ(code_of(many + kEnd), Code::kLimitExceeded);
  EXPECT_EQ(code_of(many), Code::kLimitExceeded);  // the blocks at the end are missing
}

std::string gzipped(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return out;
}

// The trailer says a size but for multiples of 4 GiB (here of less), so there may be more.
TEST(Gzip, UnpacksMoreThanTheTrailerCanSay) {
  std::string content;
  for (uint32_t i = 0, state = 1; i < 300000; ++i) {
    state = state * 1664525 + 1013904223;
    content += static_cast<char>(i % 2 == 0 ? 0 : state >> 24);  // as wide values that hold narrow ones
  }
  const std::string packed = gzipped(content);
  for (const uint64_t modulus : {1000u, 65536u, 299999u, 300000u, 300001u}) {
    const auto whole = inflate_gzip(as_bytes(packed), size_t{1} << 20, "t", modulus);
    ASSERT_TRUE(whole.has_value()) << whole.error().message;
    EXPECT_EQ(whole->size, content.size());
    EXPECT_EQ(text_of(whole->bytes()), content);
    const auto cut = inflate_gzip(as_bytes(packed.substr(0, packed.size() / 2)), size_t{1} << 20, "t", modulus);
    ASSERT_FALSE(cut.has_value());
    EXPECT_EQ(cut.error().code, Code::kDataLoss);
  }
  EXPECT_EQ(inflate_gzip(as_bytes(packed), 200000, "t", 65536).error().code, Code::kLimitExceeded);
}

TEST(Gzip, UnpacksWholeFilesWithinLimits) {
  const std::string content = entry("a", "first") + kEnd, packed = gzipped(content);
  EXPECT_TRUE(looks_like_gzip(as_bytes(packed)));
  EXPECT_FALSE(looks_like_gzip(as_bytes(content)));
  const auto whole = inflate_gzip(as_bytes(packed), size_t{1} << 20, "t");
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_EQ(text_of(whole->bytes()), content);
  EXPECT_EQ(inflate_gzip(as_bytes(packed), 100, "t").error().code, Code::kLimitExceeded);
  EXPECT_EQ(inflate_gzip(as_bytes(packed.substr(0, packed.size() - 9)), 1 << 20, "t").error().code,
            Code::kLimitExceeded);
  EXPECT_EQ(inflate_gzip(as_bytes(packed + packed), 1 << 20, "t").error().code, Code::kDataLoss);
  EXPECT_EQ(inflate_gzip(as_bytes("\x1F\x8B"), 1 << 20, "t").error().code, Code::kDataLoss);
  std::string damaged = packed;
  damaged[packed.size() - 8] = static_cast<char>(~damaged[packed.size() - 8]);  // the checksum
  EXPECT_EQ(inflate_gzip(as_bytes(damaged), 1 << 20, "t").error().code, Code::kDataLoss);
  // Streams that unpack to their promised size, which is more than weights have.
  const std::string zeros(size_t{17} << 20, '\0');
  EXPECT_EQ(inflate_gzip(as_bytes(gzipped(zeros)), size_t{1} << 40, "t").error().code, Code::kLimitExceeded);
  EXPECT_TRUE(inflate_gzip(as_bytes(gzipped(zeros.substr(size_t{2} << 20))), size_t{1} << 40, "t").has_value());
  std::string bomb = packed;
  std::memcpy(bomb.data() + bomb.size() - 4, "\xFF\xFF\xFF\x7F", 4);
  EXPECT_EQ(inflate_gzip(as_bytes(bomb), size_t{1} << 40, "t").error().code, Code::kLimitExceeded);
}

}  // namespace
}  // namespace syrinx
