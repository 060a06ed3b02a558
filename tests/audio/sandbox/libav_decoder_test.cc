#include "audio/sandbox/libav_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "audio/sandbox/container_end.h"
#include "audio/sandbox/file_view.h"
#include "tests/audio/container_kinds.h"
#include "tests/audio/sandbox/memory_host.h"

namespace syrinx {
namespace {

const Libav& libav() {
  static const Libav loaded = [] {
    Libav found = **find_libav();
    found.av_max_alloc(size_t{16} << 20);  // this process has no limit of its own
    return found;
  }();
  return loaded;
}

SoundContainer container(const std::string& file) {
  return container_of(std::as_bytes(std::span(file))).value_or(SoundContainer::kMp4);
}

struct Decoded {
  DecodeEnd end;
  std::vector<float> samples;
};
Decoded decode(const std::string& file, SoundContainer kind, bool takes_parts = false) {
  MemoryHost host(file);
  DecodeEnd end = decode_libav(libav(), {kind, takes_parts ? 1U : 0U, file.size()}, host);
  return {std::move(end), std::move(host.samples)};
}

class WholeKinds : public testing::TestWithParam<ContainerKind> {};
INSTANTIATE_TEST_SUITE_P(Whole, WholeKinds, testing::ValuesIn(kWholeKinds), kind_name);
class LiveKinds : public testing::TestWithParam<ContainerKind> {};
INSTANTIATE_TEST_SUITE_P(Live, LiveKinds, testing::ValuesIn(kLiveKinds), kind_name);
class AllKinds : public testing::TestWithParam<ContainerKind> {};
INSTANTIATE_TEST_SUITE_P(Whole, AllKinds, testing::ValuesIn(kWholeKinds), kind_name);
INSTANTIATE_TEST_SUITE_P(Live, AllKinds, testing::ValuesIn(kLiveKinds), kind_name);

TEST_P(WholeKinds, CutFileIsRefused) {
  const TempFolder folder;
  const std::string file = read_text(make_container(folder, GetParam(), 0.1));
  const SoundContainer kind = container(file);
  ASSERT_EQ(decode(file, kind).end.fault, DecodeFault::kNone) << decode(file, kind).end.detail;
  for (size_t size = 0; size < file.size(); size += 1 + size / 512)
    ASSERT_NE(decode(file.substr(0, size), kind).end.fault, DecodeFault::kNone) << size << " of " << file.size();
  EXPECT_EQ(decode(file.substr(0, file.size() - 1), kind).end.fault, DecodeFault::kCutOff);
}

// An MP4 only where its tables come first: ffmpeg writes them last unless told otherwise.
TEST_P(WholeKinds, CutFileIsReadInPart) {
  const TempFolder folder;
  const std::string file = read_text(make_container(folder, GetParam(), 1));
  const SoundContainer kind = container(file);
  const Decoded whole = decode(file, kind), part = decode(file.substr(0, file.size() * 2 / 3), kind, true);
  ASSERT_EQ(whole.end.fault, DecodeFault::kNone);
  const bool has_tables_last = kind == SoundContainer::kMp4 && file.find("moov") > file.find("mdat");
  EXPECT_EQ(part.end.fault, DecodeFault::kCutOff);
  EXPECT_EQ(part.samples.empty(), has_tables_last);
  ASSERT_LT(part.samples.size(), whole.samples.size());
  EXPECT_TRUE(std::equal(part.samples.begin(), part.samples.end(), whole.samples.begin()));
}

// A recording without a length that is cut off loses its end, and nothing else changes.
TEST_P(LiveKinds, CutFileEndsBehindAPart) {
  const TempFolder folder;
  const std::string file = read_text(make_container(folder, GetParam(), 0.5));
  const SoundContainer kind = container(file);
  const Decoded whole = decode(file, kind);
  ASSERT_EQ(whole.end.fault, DecodeFault::kNone) << whole.end.detail;
  size_t good = 0;
  for (size_t size = 0; size < file.size(); size += 1 + size / 1024) {
    const Decoded part = decode(file.substr(0, size), kind);
    if (part.end.fault != DecodeFault::kNone) continue;
    ++good;
    ASSERT_LE(part.samples.size(), whole.samples.size()) << size;
    ASSERT_TRUE(std::equal(part.samples.begin(), part.samples.end(), whole.samples.begin())) << size;
  }
  EXPECT_LT(good, size_t{100});
}

TEST_P(AllKinds, DamagedFileEndsInAFault) {
  const TempFolder folder;
  const std::string file = read_text(make_container(folder, GetParam(), 0.1));
  const SoundContainer kind = container(file);
  for (size_t at = 0; at < file.size(); at += 1 + at / 256) {
    for (const char change : {'\x01', '\x80', '\xFF'}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      const DecodeEnd end = decode(damaged, kind).end;
      EXPECT_LE(end.fault, DecodeFault::kNoMemory);
      EXPECT_LT(end.detail.size(), size_t{kMaxDetailBytes});
    }
  }
}

// An hour in all, told by numbers; the samples are those of the file.
TEST(LibavDecoder, SilencesAreToldAsNumbers) {
  const TempFolder folder;
  const std::string words = gaps_words(8000, 1000);
  const std::string file = read_text(make_container(folder, {"gaps", words.c_str(), "mkv", 48000}, 0.2));
  MemoryHost host(file);
  host.max_samples = SIZE_MAX;
  const DecodeEnd end = decode_libav(libav(), {SoundContainer::kMatroska, 0, file.size()}, host);
  EXPECT_EQ(end.fault, DecodeFault::kNone) << end.detail;
  EXPECT_EQ(host.silences, std::vector<uint64_t>({1000u * 8000 - 64, 1000u * 8000 - 64, 1000u * 8000 - 64}));
  EXPECT_EQ(host.samples.size(), 10u * 64 * 8);
}

// ASF announces its length in its tracks: more than the ten minutes of a file that announces none.
TEST(LibavDecoder, AsfAnnouncesItsLength) {
  const TempFolder folder;
  const ContainerKind paused{"paused", "-af \"asetpts='PTS+if(gt(T,1),1200/TB,0)'\" -c:a wmav2", "wma", 44100};
  const std::string file = read_text(make_container(folder, paused, 2));
  MemoryHost host(file);
  host.max_samples = SIZE_MAX;
  const DecodeEnd end = decode_libav(libav(), {SoundContainer::kAsf, 0, file.size()}, host);
  EXPECT_EQ(end.fault, DecodeFault::kNone) << end.detail;
  ASSERT_EQ(host.silences.size(), 1u);
  EXPECT_NEAR(static_cast<double>(host.silences[0]) / 44100, 1200, 0.2);
}

// As libraries that were built for something else; what was never opened is not closed as if it were.
TEST(LibavDecoder, MissingDemuxerIsAFault) {
  Libav other = libav();
  other.av_find_input_format = [](const char*) -> const AVInputFormat* { return nullptr; };
  const std::string file(100, '\0');
  MemoryHost host(file);
  const DecodeEnd end = decode_libav(other, {SoundContainer::kMp4, 0, file.size()}, host);
  EXPECT_EQ(end.fault, DecodeFault::kNoDemuxer);
}

// The names are those of no machine.
TEST(LibavDecoder, MissingLibraryIsNamed) {
  EXPECT_TRUE(find_libav());
  LibavNames names = libav_names();
  names.format = "libavformat.so.7";
  const auto missing = load_libav(names);
  ASSERT_FALSE(missing);
  const Error error = no_decoder(SoundContainer::kMatroska, "me", missing.error());
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_EQ(error.message,
            "'me' is WebM or Matroska, which needs FFmpeg's libraries, and libavformat.so.7 cannot be loaded (Debian's "
            "package libavformat7 brings it); WAV, FLAC, MP3, Ogg with Vorbis or Opus need none of them");
  names = libav_names();
  names.codec = names.util;  // a library, but another one
  EXPECT_EQ(load_libav(names).error().code, Code::kUnsupported);
}

bool is_cut(const std::string& file, SoundContainer kind) {
  MemoryHost host(file);
  FileView view(host, file.size());
  return is_cut_off(view, kind);
}

TEST(ContainerEnd, SizesBeyondTheFileAreCuts) {
  const std::string box("\0\0\0\x0CskipABCD", 12), to_end("\0\0\0\0mdatABCD", 12),
      large("\0\0\0\1mdat\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 16);
  EXPECT_FALSE(is_cut(box + box, SoundContainer::kMp4));
  EXPECT_FALSE(is_cut(box + to_end, SoundContainer::kMp4));
  EXPECT_TRUE(is_cut((box + box).substr(0, 23), SoundContainer::kMp4));
  EXPECT_TRUE(is_cut(box + large, SoundContainer::kMp4));
  EXPECT_TRUE(is_cut(box + large.substr(0, 12), SoundContainer::kMp4));
  const std::string ebml("\x1A\x45\xDF\xA3\x81\0", 6), live("\x18\x53\x80\x67\xFF", 5),
      known("\x18\x53\x80\x67\x84\xEC\x82\0\0", 9);
  EXPECT_FALSE(is_cut(ebml + known, SoundContainer::kMatroska));
  EXPECT_TRUE(is_cut(ebml + known.substr(0, 8), SoundContainer::kMatroska));
  EXPECT_FALSE(is_cut(ebml + live, SoundContainer::kMatroska));
  EXPECT_FALSE(is_cut(ebml + live + std::string("\xEC\x82\0\0", 4), SoundContainer::kMatroska));
  EXPECT_TRUE(is_cut(ebml + live + std::string("\xEC\x82\0", 3), SoundContainer::kMatroska));
  const std::string amr = "#!AMR\n" + std::string(1, '\x3C') + std::string(31, 'a');
  EXPECT_FALSE(is_cut(amr + amr.substr(6), SoundContainer::kAmr));
  EXPECT_TRUE(is_cut(amr + '\x3C', SoundContainer::kAmr));
}

}  // namespace
}  // namespace syrinx
