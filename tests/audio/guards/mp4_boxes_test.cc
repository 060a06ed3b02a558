// Files of our own making that cost FFmpeg's reader gigabytes or minutes where it sees them as they are.
#include "audio/guards/mp4_boxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

#include "audio/decode/recording.h"
#include "tests/audio/ffmpeg_tools.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string be(uint64_t value, size_t bytes = 4) {
  std::string text;
  for (size_t i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}
std::string box(const std::string& name, const std::string& body) { return be(body.size() + 8) + name + body; }
std::string full(const std::string& name, const std::string& body, uint64_t flags = 0) {
  return box(name, be(flags) + body);
}
std::string times(size_t count, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

const std::string kFtyp = box("ftyp", "M4A " + be(0));
const std::string kMdat = box("mdat", std::string(100000, '\0'));

// Counts that no file could fill, as FFmpeg believes them: `samples` of `bytes` in one chunk.
std::string table(uint64_t samples, uint64_t bytes, uint64_t duration = 1024) {
  return full("stts", be(1) + be(samples) + be(duration)) + full("stsc", be(1) + be(1) + be(samples) + be(1)) +
         full("stsz", be(bytes) + be(samples)) + full("stco", be(1) + be(40));
}
std::string track(const std::string& tables, const std::string& more = "") {
  const std::string handler = full("hdlr", be(0) + "soun" + std::string(13, '\0'));
  const std::string header = full("mdhd", be(0) + be(0) + be(48000) + be(0) + be(0));
  return box("trak", more + box("mdia", header + handler + box("minf", box("stbl", tables))));
}
std::string film(const std::string& tracks) { return kFtyp + box("moov", tracks) + kMdat; }
std::string fragments(const std::string& runs,
                      const std::string& trex = full("trex", be(1) + be(1) + be(1024) + be(1) + be(0))) {
  return kFtyp + box("moov", track(table(0, 0)) + box("mvex", trex)) +
         box("moof", box("traf", full("tfhd", be(1)) + runs)) + kMdat;
}

uint64_t peak_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> word) return std::stoull(word);
  return 0;
}

// By the whole way of a recording, FFmpeg's libraries with it.
void expect_refused(const std::string& file, Code code, const std::string& part) {
  ASSERT_TRUE(std::ofstream("/proc/self/clear_refs") << "5" << std::flush);  // the peak starts anew
  const uint64_t before_kb = peak_kb();
  ASSERT_GT(before_kb, 0u);
  const std::clock_t start = std::clock();
  const auto got = read_recording(std::as_bytes(std::span(file)), "me", {});
  // Processor time, which does not grow on a busy machine.
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10) << part;
  EXPECT_LT(peak_kb(), before_kb + 64 * 1024) << part;
  ASSERT_FALSE(got) << part;
  EXPECT_EQ(got.error().code, code) << got.error().message;
  EXPECT_THAT(got.error().message, AllOf(HasSubstr(part), HasSubstr("'me'")));
}

TEST(Mp4Boxes, RefuseSamplesThatTheFileCannotHold) {
  const std::string greedy = track(table(11000000, 1));
  expect_refused(film(greedy), Code::kDataLoss, "tracks announce more than");
  expect_refused(film(times(2, greedy)), Code::kDataLoss, "tracks announce more than");
  expect_refused(film(times(80, track(table(0xFFFFFFFF, 1)))), Code::kDataLoss, "tracks announce more than");
  expect_refused(film(track(table(0xFFFFFFFF, 0xFFFFFFFF))), Code::kDataLoss, "tracks announce more than");
  expect_refused(film(times(3, track(table(40000, 1)))), Code::kDataLoss, "tracks announce more than");
  // Each has its own size, and all are of the same bytes.
  const std::string sizes = times(20000, be(50000));
  expect_refused(film(track(full("stsz", be(0) + be(20000) + sizes))), Code::kDataLoss, "tracks announce more than");
}

TEST(Mp4Boxes, RefuseMoreSamplesThanTheIndexMayHave) {
  const std::string nibbles(kMaxMp4Samples / 2 + 1, '\0');
  const std::string many = full("stz2", be(4) + be(kMaxMp4Samples + 1) + nibbles);
  expect_refused(film(track(many)), Code::kLimitExceeded, "more than 4194304 samples");
  // Sound of constant size goes by chunks; these are a hundred of two milliards each.
  const std::string chunks = full("stts", be(1) + be(1) + be(1)) +
                             full("stsc", be(1) + be(1) + be(0x7FFFFFFF) + be(1)) + full("stsz", be(1) + be(1)) +
                             full("stco", be(100) + times(100, be(40)));
  expect_refused(film(track(chunks)), Code::kLimitExceeded, "more than 4194304 samples");
  // Each edit plays all of them again, which is another index; a silent one plays nothing.
  for (const auto& [media, is_refused] : {std::pair(uint64_t{0}, true), std::pair(uint64_t{0xFFFFFFFF}, false)}) {
    const std::string edits = full("elst", be(60) + times(60, be(1) + be(media) + be(1 << 16)));
    const std::string file = film(track(table(90000, 1), box("edts", edits)));
    if (is_refused)
      expect_refused(file, Code::kLimitExceeded, "more than 4194304 samples in its tracks and their edits");
    EXPECT_EQ(check_mp4_boxes(std::as_bytes(std::span(file)), "me").has_value(), !is_refused);
  }
}

TEST(Mp4Boxes, RefuseMoreTracksEditsTagsAndFragmentsThanAnyoneHas) {
  expect_refused(film(times(17, track(table(1, 1)))), Code::kLimitExceeded, "more than 16 tracks");
  const auto edited = [](size_t edits) {
    const std::string list = full("elst", be(edits) + times(edits, be(1) + be(0) + be(1 << 16)));
    return film(track(table(90000, 1), box("edts", list)));
  };
  expect_refused(edited(65), Code::kLimitExceeded, "65 edits, more than 64");
  expect_refused(edited(8333), Code::kLimitExceeded, "8333 edits, more than 64");
  const std::string tags = full("meta", full("hdlr", be(0) + "mdir") + box("ilst", times(257, box("----", ""))));
  expect_refused(film(box("udta", tags)), Code::kLimitExceeded, "more than 256 tags");
  const std::string moofs = times(kMaxMp4Fragments / 16 + 1, box("moof", ""));
  expect_refused(film(times(16, track(table(1, 1)))) + moofs, Code::kLimitExceeded, "65537 fragments of 16 tracks");
  const std::string trex = full("trex", be(1) + be(1) + be(1) + be(1) + be(0));
  expect_refused(fragments("", times(17, trex)), Code::kLimitExceeded, "fragments of more than 16 tracks");
}

TEST(Mp4Boxes, RefuseTablesThatTheirBoxesDoNotHold) {
  for (const std::string name : {"stts", "ctts", "stsc", "stco", "co64"}) {
    expect_refused(film(track(full(name, be(0xFFFFFFFF) + std::string(240, '\1')))), Code::kDataLoss, "'" + name + "'");
    expect_refused(film(track(full(name, ""))), Code::kDataLoss, "'" + name + "'");
  }
  expect_refused(film(track(full("stsz", be(0) + be(3) + be(1)))), Code::kDataLoss, "'stsz'");
  expect_refused(film(track(full("stz2", be(16) + be(3) + be(1)))), Code::kDataLoss, "'stz2'");
  expect_refused(film(track(full("stz2", be(7) + be(3) + be(1)))), Code::kDataLoss, "'stz2'");
  expect_refused(film(track("", box("edts", full("elst", be(2) + std::string(12, '\0'))))), Code::kDataLoss, "'elst'");
  expect_refused(film(track(table(1, 1) + table(1, 1))), Code::kDataLoss, "'stts' twice");
  expect_refused(film(track(full("stsd", be(1) + box("mp4a", box("wave", table(9, 1)))))), Code::kDataLoss, "codec's");
  // A size beyond its parent, and one that ends in the middle of a header.
  expect_refused(film(be(1000) + "trak" + std::string(50, '\1')), Code::kDataLoss, "'moov'");
  expect_refused(film(track("") + "\1\2\3"), Code::kDataLoss, "'moov'");
}

TEST(Mp4Boxes, RefuseFragmentsThatTheFileCannotHold) {
  expect_refused(fragments(full("trun", be(0xFFFFFFFF))), Code::kLimitExceeded, "more than 4194304 samples");
  expect_refused(fragments(times(3, full("trun", be(50000)))), Code::kDataLoss, "tracks announce more than");
  expect_refused(fragments(full("trun", be(50000) + std::string(400, '\0'), 0x200)), Code::kDataLoss, "'trun'");
  // Many small boxes that all name the same bytes: by sizes of their own, the fragment's, or the track's.
  const std::string sized = full("trun", be(1) + be(90000), 0x200), plain = full("trun", be(1));
  expect_refused(fragments(times(9, sized)), Code::kDataLoss, "tracks announce more than");
  const std::string trex = full("trex", be(1) + be(1) + be(1024) + be(90000) + be(0));
  expect_refused(fragments(times(9, plain), trex), Code::kDataLoss, "tracks announce more than");
  const std::string bearer = full("tfhd", be(1) + be(1024) + be(90000), 0x18);
  expect_refused(fragments(bearer + times(9, plain)), Code::kDataLoss, "tracks announce more than");
}

// Unneeded boxes may hold anything: neither a table out of its place nor a packed header reaches FFmpeg.
TEST(Mp4Boxes, UnneededBoxesAreHidden) {
  const std::string greedy = track(table(11000000, 1));
  for (const std::string name : {"free", "hoov", "uuid", "sidx", "wide", "cmov", "udta", "stbl"}) {
    const std::string file = kFtyp + box(name, box("moov", greedy)) + greedy + kMdat;
    const auto hidden = check_mp4_boxes(std::as_bytes(std::span(file)), "me");
    ASSERT_TRUE(hidden) << hidden.error().message;
    EXPECT_THAT(*hidden, testing::ElementsAre(kFtyp.size() + 4, kFtyp.size() + 8 + 8 + greedy.size() + 4)) << name;
    expect_refused(file, Code::kDataLoss, "is damaged");
  }
  const std::string file = film(box("cmov", greedy) + box("tref", greedy) + box("edts", table(11000000, 1)));
  expect_refused(file, Code::kDataLoss, "contains no audio");
}

}  // namespace
}  // namespace syrinx
