// Files of ffmpeg's with tables put into them that cost its reader hundreds of megabytes where it sees them.
#include "audio/guards/matroska_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "audio/decode/recording.h"
#include "base/memory.h"
#include "tests/audio/ffmpeg_tools.h"
#include "tests/audio/sound_tools.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kTags = "\x12\x54\xC3\x67", kChapters = "\x10\x43\xA7\x70", kCues = "\x1C\x53\xBB\x6B",
                  kAttachments = "\x19\x41\xA4\x69", kSeekHead = "\x11\x4D\x9B\x74", kTracks = "\x16\x54\xAE\x6B",
                  kSegment = "\x18\x53\x80\x67", kEbml = "\x1A\x45\xDF\xA3";

std::string be(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}
std::string element(const std::string& id, const std::string& body) { return id + "\x01" + be(body.size(), 7) + body; }
std::string times(size_t count, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}
// So many entries without anything in them, of three bytes each.
std::string tags(size_t entries) { return element(kTags, element("\x73\x73", times(entries, "\x67\xC8\x80"))); }

Result<Recording> read(const std::string& file) { return read_recording(std::as_bytes(std::span(file)), "me"); }

class MatroskaElements : public testing::Test {
 protected:
  // Makes a file of half a second; `words` as ffmpeg takes them.
  std::string make(const std::string& words) {
    write_wav_file(folder_.file("in.wav"), voice_like(24000, 48000), 48000);
    run_ffmpeg("-i " + folder_.file("in.wav") + " -c:a libopus " + words + " -fflags +bitexact " +
               folder_.file("x.webm"));
    return read_text(folder_.file("x.webm"));
  }
  const TempFolder folder_;
};

// Its segment's size, where that is known, in the middle of it.
std::string with(std::string file, const std::string& table, bool at_its_end) {
  const size_t at = file.find(kSegment) + kSegment.size() + 1;
  if (file[at] != '\xFF') {
    uint64_t size = 0;
    for (size_t i = 0; i < 7; ++i) size = size << 8 | static_cast<unsigned char>(file[at + i]);
    file.replace(at, 7, be(size + table.size(), 7));
  }
  return at_its_end ? file + table : file.insert(at + 7, table);
}

TEST_F(MatroskaElements, TablesThatSoundDoesNotNeedCostNothing) {
  for (const char* const words : {"", "-live 1"}) {
    const std::string file = make(words);
    const auto plain = read(file);
    ASSERT_TRUE(plain) << plain.error().message;
    const std::string table = tags(2'000'000);
    const std::string early = with(file, table, /*at_its_end=*/false), late = with(file, table, /*at_its_end=*/true);
    const uint64_t before = peak_rss_bytes();
    for (const std::string& full : {std::cref(early), std::cref(late)}) {
      const auto got = read(full);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(got->samples, plain->samples);
    }
    EXPECT_LT(peak_rss_bytes() - before, uint64_t{100} << 20);
    for (const std::string& id : {kChapters, kCues, kAttachments, kSeekHead}) {
      const auto got = read(with(file, element(id, times(50'000, "\xBB\x80")), /*at_its_end=*/false));
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(got->samples, plain->samples);
    }
  }
}

TEST_F(MatroskaElements, PossibleTablesAreLimited) {
  const std::string file = make("");
  const std::string tracks = element(kTracks, times(kMaxMatroskaEntries + 1, "\xAE\x80"));
  for (const std::string& table : {tracks, element("\xEC", "x" + tags(kMaxMatroskaEntries)),
                                   element("\xEC", times(kMaxMatroskaEntries, kTags + "\x82\xEC\x80")),
                                   times(kMaxMatroskaEntries + 1, kTags + "\x80")}) {
    const auto got = read(with(file, table, /*at_its_end=*/false));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, Code::kLimitExceeded);
    EXPECT_THAT(got.error().message, HasSubstr("'me' has more than 8192 tables, or entries"));
  }
}

// Four bytes of sound may look like anything.
TEST_F(MatroskaElements, AnAccidentIsNoTable) {
  const std::string file = make("");
  const auto plain = read(file);
  ASSERT_TRUE(plain) << plain.error().message;
  std::string noise;
  for (size_t i = 0; i < 100'000; ++i) noise += static_cast<char>(i * 2654435761U >> 13);
  const auto got = read(with(file, element("\xEC", noise + kTags + noise), /*at_its_end=*/false));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->samples, plain->samples);
}

// However deep: who looked into each would need a stack for it.
TEST_F(MatroskaElements, SegmentsWithinSegmentsAreNoSegments) {
  constexpr size_t kLevels = 1'000'000, kHeadBytes = 8;
  std::string nested;
  for (size_t left = kLevels; left-- > 0;) nested += kSegment + be(0x10000000 | (left * kHeadBytes), 4);
  const std::string file = make("");
  const auto plain = read(file), got = read(with(file, nested, /*at_its_end=*/true)),
             alone = read(element(kEbml, "") + nested);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_TRUE(!got || got->samples == plain->samples);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, Code::kDataLoss);
}

TEST_F(MatroskaElements, TablesAreHiddenWhereTheyStand) {
  const std::string head = element(kEbml, ""), none = element(kTags, "");
  const auto check = [](const std::string& file) {
    return check_matroska_elements(std::as_bytes(std::span(file)), "me").value_or(std::vector<size_t>{0});
  };
  EXPECT_THAT(check(head + element(kSegment, none + element(kTracks, none) + none)), ElementsAre(24, 60));
  const std::string live =
      head + kSegment + "\xFF" + element(kCues, "x") + "\x1F\x43\xB6\x75\xFF" + element("\xA3", kTags);
  EXPECT_THAT(check(live + none), ElementsAre(17, live.size()));
  EXPECT_THAT(check(live + "\xEC\x85"
                           "abcd"),
              ElementsAre(0));  // cut off
}

}  // namespace
}  // namespace syrinx
