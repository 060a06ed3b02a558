#include "audio/child/child_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "audio/child/decoder_program.h"
#include "audio/decode/recording.h"
#include "audio/decode/sound_file.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/audio/container_kinds.h"
#include "tests/audio/part_tools.h"

namespace syrinx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ContainerKind kOggFlac{"ogg_flac", "-c:a flac", "ogg", 16000};
const ContainerKind kPhone{"aac_of_a_phone", "-c:a aac -b:a 64k -movflags +faststart", "mp4", 16000};

Result<Recording> read(const std::string& file, const SoundLimits& limits = {}) {
  return read_recording(std::as_bytes(std::span(file)), "me", limits);
}
void expect_fault(const std::string& file, Code code, const std::string& part, const SoundLimits& limits = {}) {
  const auto got = read(file, limits);
  ASSERT_FALSE(got) << part;
  EXPECT_EQ(got.error().code, code) << got.error().message;
  EXPECT_THAT(got.error().message, AllOf(HasSubstr(part), HasSubstr("'me'")));
}
std::string make(const TempFolder& folder, const ContainerKind& kind, double seconds) {
  return read_text(make_container(folder, kind, seconds));
}

class ChildKinds : public testing::TestWithParam<ContainerKind> {};
INSTANTIATE_TEST_SUITE_P(Whole, ChildKinds, testing::ValuesIn(kWholeKinds), kind_name);
INSTANTIATE_TEST_SUITE_P(Live, ChildKinds, testing::ValuesIn(kLiveKinds), kind_name);
INSTANTIATE_TEST_SUITE_P(Ogg, ChildKinds, testing::Values(kOggFlac), kind_name);

TEST_P(ChildKinds, SoundEqualsFfmpegs) {
  const TempFolder folder;
  const std::string path = make_container(folder, GetParam(), 2);
  const auto got = read_recording(path);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->rate_hz, GetParam().rate_hz);
  const std::vector<float> expected = decode_by_ffmpeg(folder, path, GetParam().channels);
  ASSERT_EQ(got->samples.size(), expected.size());
  EXPECT_NEAR(got->seconds(), 2, 0.15);
  double worst = 0, loudest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got->samples[i]) - expected[i]));
    loudest = std::max(loudest, std::abs(static_cast<double>(expected[i])));
  }
  EXPECT_GT(loudest, 0.1 / GetParam().channels);
  EXPECT_LE(worst, 1e-6 * std::max(1.0, loudest));
  RecordProperty("worst", std::to_string(worst));
}

// A few; decode_mutations.cc reads hundreds.
TEST_P(ChildKinds, MutatedFileEndsSoon) {
  const TempFolder folder;
  const std::string file = make(folder, GetParam(), 0.5);
  std::mt19937 random(3);
  const SoundLimits limits{.max_seconds = 20};
  for (int round = 0; round < 4; ++round) {
    std::string damaged = file;
    for (int i = 0; i < 4; ++i) damaged[random() % (round < 2 ? 200 : file.size())] = static_cast<char>(random());
    const Stopwatch watch;
    const auto got = read(damaged, limits);
    EXPECT_LT(watch.elapsed_ms(), 10000);  // 2 s where the machine has time
    if (got) continue;
    EXPECT_THAT(got.error().message, HasSubstr("'me'"));
    EXPECT_NE(got.error().code, Code::kInternal) << got.error().message;
    EXPECT_LT(got.error().message.size(), 300u);
  }
}

// By the container's times: a track that begins late, and one with a pause that has no packets.
TEST(ChildDecoder, GapsAreSilence) {
  const TempFolder folder;
  const std::string picture = "-f lavfi -i testsrc=duration=6:size=64x48:rate=5 -c:v mpeg4 ";
  for (const char* const ending : {"mp4", "mkv"}) {
    const std::string words = picture + "-map 1 -map 0 -af asetpts=PTS+3/TB -c:a aac";
    const auto got = read(make(folder, {"late", words.c_str(), ending, 16000}, 2));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_NEAR(got->seconds(), 5, 0.15) << ending;
    const auto loud = std::ranges::find_if(got->samples, [](float sample) { return std::abs(sample) > 0.05f; });
    EXPECT_NEAR(static_cast<double>(loud - got->samples.begin()) / 16000, 3, 0.15) << ending;
  }
  const auto got =
      read(make(folder, {"paused", "-af \"asetpts='PTS+if(gt(T,1),4/TB,0)'\" -c:a libopus", "webm", 48000}, 2));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_NEAR(got->seconds(), 6, 0.2);
}

// The time that a recorder's clock showed is no silence; a film begins with its first track.
TEST(ChildDecoder, SoundAloneBeginsAtOnce) {
  const TempFolder folder;
  for (const char* const ending : {"webm", "mkv", "mp4"}) {
    const auto got = read(make(folder, {"late", "-c:a libopus -output_ts_offset 1800", ending, 48000}, 2));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_NEAR(got->seconds(), 2, 0.1) << ending;
  }
  const ContainerKind film{"film",
                           "-f lavfi -i testsrc=duration=6:size=64x48:rate=5 -c:v mpeg4 -map 1 -map 0 -af "
                           "asetpts=PTS+3/TB -c:a aac -output_ts_offset 1800",
                           "mkv", 16000};
  const auto got = read(make(folder, film, 2));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_NEAR(got->seconds(), 5, 0.3);
}

// A clock that is slow by a tenth: no word is torn where half a second has come together.
TEST(ChildDecoder, DriftIsNoGap) {
  const TempFolder folder;
  const ContainerKind slow{"slow", "-af 'asetnsamples=n=256:p=0,asetpts=1.1*PTS' -c:a pcm_s16le", "mkv", 16000};
  const auto got = read(make(folder, slow, 8));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->samples.size(), 8u * 16000);
}

// Ten packets of eight channels, far apart: at the highest rate an hour would be too much work.
TEST(ChildDecoder, SilenceOfGapsIsBounded) {
  const TempFolder folder;
  const auto samples_of = [&](int rate_hz, int gap_s) {
    const std::string words = gaps_words(rate_hz, gap_s);
    const std::string path = make_container(folder, {"gaps", words.c_str(), "mkv", 48000}, 0.2);
    EXPECT_LT(std::filesystem::file_size(path), 20000u);
    uint64_t samples = 0;
    const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                         .add =
                             [&](std::span<const float> some) {
                               samples += some.size();
                               return Status();
                             }};
    const Status got = read_sound(path, {.max_seconds = 24 * 3600}, sink);
    EXPECT_TRUE(got) << got.error().message;
    return samples;
  };
  EXPECT_EQ(samples_of(8000, 1000), 3000u * 8000 + 7 * 64);
  EXPECT_EQ(samples_of(384000, 400), 400u * 384000 + 9 * 64);
  EXPECT_EQ(samples_of(384000, 3590), 10u * 64);
}

TEST(ChildDecoder, UnsupportedTracksAreRefused) {
  const TempFolder folder;
  expect_fault(make(folder, {"ac3", "-c:a ac3", "mp4", 48000}, 0.2), Code::kUnsupported, "coded as ac3; AAC, ALAC");
  const ContainerKind picture{"silent", "-f lavfi -i testsrc=duration=1 -map 1 -c:v mpeg4", "mp4", 48000};
  expect_fault(make(folder, picture, 0.2), Code::kDataLoss, "contains no audio");
  const ContainerKind slow{"", "-c:a aac", "aac", 24000}, fast{"", "-c:a aac", "aac", 48000};
  expect_fault(make(folder, slow, 0.2) + make(folder, fast, 0.2), Code::kUnsupported, "changes its rate");
  const std::string tagged = std::string("ID3\4\0\0\0\0\0\1", 10) + '\0' + make(folder, slow, 0.2);
  EXPECT_TRUE(read(tagged)) << read(tagged).error().message;
}

// A packet of a Matroska file can be all of it; the sink gets blocks.
TEST(ChildDecoder, LargePacketComesInBlocks) {
  const TempFolder folder;
  const ContainerKind large{"large", "-af asetnsamples=n=1000000:p=0,pan='stereo|c0=c0|c1=0.5*c0' -c:a pcm_u8", "mkv",
                            48000};
  const std::string path = make_container(folder, large, 30);
  std::vector<float> all;
  size_t longest = 0;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add =
                           [&](std::span<const float> samples) {
                             longest = std::max(longest, samples.size());
                             all.insert(all.end(), samples.begin(), samples.end());
                             return Status();
                           }};
  const Status got = read_sound(path, {}, sink);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_LE(longest, size_t{32768} + 48000 / 20);  // a block, and a window of channels that waited
  EXPECT_EQ(all.size(), 30u * 48000);
  EXPECT_EQ(all, decode_by_ffmpeg(folder, path, 2));
}

// As older cameras have it: no `ftyp`, the first box is nothing or the sound itself.
TEST(ChildDecoder, QuickTimeNeedsNoHead) {
  const TempFolder folder;
  std::string file = make(folder, {"plain", "-c:a pcm_s16be", "mov", 16000}, 0.5);
  const auto whole = read(file);
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_EQ(file.substr(4, 4), "ftyp");
  file.replace(4, 4, "wide");
  const auto got = read(file);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->samples, whole->samples);
  for (const char* const name : {"moov", "mdat"})
    expect_fault(std::string("\0\0\0\x10", 4) + name + std::string(8, '\1'), Code::kDataLoss, "'me'");
}

TEST(ChildDecoder, LimitsHold) {
  const TempFolder folder;
  const std::string file = make(folder, kWholeKinds[2], 1);
  expect_fault(file, Code::kLimitExceeded, "more than", {.max_seconds = 0.5});
  expect_fault(file, Code::kLimitExceeded, "channels", {.max_channels = 1});
  expect_fault(file, Code::kLimitExceeded, "rate", {.max_rate_hz = 16000});
}

TEST(ChildDecoder, CutFilesAreReadInPart) {
  const TempFolder folder;
  for (const ContainerKind& kind : {kPhone, kWholeKinds[0], kWholeKinds[16], kLiveKinds[0], kLiveKinds[1], kOggFlac}) {
    const std::string file = make(folder, kind, 3);
    const auto whole = read(file);
    ASSERT_TRUE(whole) << kind.name << whole.error().message;
    const std::string cut = file.substr(0, file.size() * 2 / 3 + 1);
    expect_fault(cut, Code::kDataLoss, "cut off");
    const ReadPart part = read_part(cut);
    ASSERT_TRUE(part.status) << kind.name << part.status.error().message;
    EXPECT_THAT(part.warnings, ElementsAre(AllOf(HasSubstr("cut off"), HasSubstr("s were read")))) << kind.name;
    ASSERT_LT(part.samples.size(), whole->samples.size());
    EXPECT_GT(part.samples.size(), whole->samples.size() / 3);
    EXPECT_TRUE(std::equal(part.samples.begin(), part.samples.end(), whole->samples.begin())) << kind.name;
    EXPECT_THAT(read_part(file).warnings, IsEmpty());
  }
}

// As MP3: to the last frame that is whole.
TEST(ChildDecoder, CutAdtsIsReadAsFarAsWhole) {
  const TempFolder folder;
  const std::string file = make(folder, kLiveKinds[0], 2);
  const ReadPart whole = read_part(file);
  ASSERT_TRUE(whole.status) << whole.status.error().message;
  EXPECT_TRUE(whole.warnings.empty());
  size_t warned = 0;
  for (size_t part = 1; part < 20; ++part) {
    const ReadPart got = read_part(file.substr(0, file.size() * part / 20));
    ASSERT_TRUE(got.status) << got.status.error().message;
    warned += got.warnings.size();
    if (!got.warnings.empty()) {
      EXPECT_THAT(got.warnings[0], AllOf(HasSubstr("'me' is cut off"), HasSubstr("s were read")));
    }
    ASSERT_LT(got.samples.size(), whole.samples.size());
    EXPECT_GT(got.samples.size() + 8192, whole.samples.size() * part / 20);
    EXPECT_TRUE(std::equal(got.samples.begin(), got.samples.end(), whole.samples.begin()));
  }
  EXPECT_GT(warned, 15u);
}

TEST(ChildDecoder, CutOggOfAnotherCodecIsUnsupported) {
  const TempFolder folder;
  const std::string file = make(folder, {"speex", "-c:a libspeex", "ogg", 16000}, 2);
  for (const size_t percent : {100, 70})
    expect_fault(file.substr(0, file.size() * percent / 100), Code::kUnsupported, "neither Vorbis, Opus nor FLAC");
}

// Each by a child of its own.
TEST(ChildDecoder, ManyThreadsDecodeAtOnce) {
  const TempFolder folder;
  const std::string file = make(folder, kPhone, 1);
  const auto expected = read(file);
  ASSERT_TRUE(expected);
  ASSERT_TRUE(keep_spare_decoder());
  std::vector<std::jthread> threads;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 2; ++round) {
        const auto got = read(file);
        if (got && got->samples == expected->samples) ++equal;
      }
    });
  threads.clear();
  drop_spare_decoder();
  EXPECT_EQ(equal, 8);
}

TEST(ChildDecoder, MissingProgramIsNamed) {
  const std::string kept = std::getenv("SYRINX_DECODE");
  ASSERT_EQ(::setenv("SYRINX_DECODE", "/nonexistent", 1), 0);
  const std::string file = "#!AMR\n" + std::string(100, '\0');
  expect_fault(file, Code::kUnsupported,
               "is AMR, which needs FFmpeg's libraries, and the program syrinx-decode cannot be run");
  EXPECT_FALSE(keep_spare_decoder());
  ASSERT_EQ(::unsetenv("SYRINX_DECODE"), 0);
  EXPECT_FALSE(find_decoder_program().has_value() && *find_decoder_program() == "/nonexistent");
  drop_spare_decoder();
  ASSERT_EQ(::setenv("SYRINX_DECODE", kept.c_str(), 1), 0);
}

// By a decoder that says nothing.
TEST(ChildDecoder, UnwantedRecordingEndsTheWait) {
  const TempFolder folder;
  const std::string sleeper = folder.path() + "/sleeper", kept = std::getenv("SYRINX_DECODE");
  write_text(sleeper, "#!/bin/sh\nexec sleep 100\n");
  std::filesystem::permissions(sleeper, std::filesystem::perms::owner_all);
  ASSERT_EQ(::setenv("SYRINX_DECODE", sleeper.c_str(), 1), 0);
  const std::string file = "#!AMR\n" + std::string(100, '\0');
  int asked = 0;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add = [](std::span<const float>) { return Status(); },
                       .looked = [&](uint64_t) { return ++asked < 3 ? Status() : fail(Code::kNotFound, "gone"); }};
  const Stopwatch watch;
  const Status got = read_sound(std::as_bytes(std::span(file)), "me", {}, sink);
  ASSERT_EQ(::setenv("SYRINX_DECODE", kept.c_str(), 1), 0);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kNotFound);
  EXPECT_EQ(got.error().message, "gone");
  EXPECT_EQ(asked, 3);
  EXPECT_LT(watch.elapsed_ms(), 15000);
}

TEST(ChildDecoder, SpareTellsThatDecodingsFail) {
  const std::string kept = std::getenv("SYRINX_DECODE");
  ASSERT_EQ(::setenv("SYRINX_DECODE", "/bin/false", 1), 0);
  const Status got = keep_spare_decoder();
  drop_spare_decoder();
  ASSERT_EQ(::setenv("SYRINX_DECODE", kept.c_str(), 1), 0);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr("syrinx-decode has ended with status 1"));
}

// Tables of an MP4 that cost FFmpeg's reader gigabytes or minutes where nobody stops it.
std::string be(uint64_t value, size_t bytes = 4) {
  std::string text;
  for (size_t i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}
std::string box(const std::string& name, const std::string& body) { return be(body.size() + 8) + name + body; }
std::string full(const std::string& name, const std::string& body) { return box(name, be(0) + body); }
std::string greedy_track(uint64_t samples, const std::string& more = "") {
  const std::string tables = full("stts", be(1) + be(samples) + be(1024)) +
                             full("stsc", be(1) + be(1) + be(samples) + be(1)) + full("stsz", be(1) + be(samples)) +
                             full("stco", be(1) + be(40));
  const std::string head =
      full("mdhd", be(0) + be(0) + be(48000) + be(0) + be(0)) + full("hdlr", be(0) + "soun" + std::string(13, '\0'));
  return box("trak", more + box("mdia", head + box("minf", box("stbl", tables))));
}
std::string times(size_t count, const std::string& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(ChildDecoder, GreedyTablesCostTheParentNothing) {
  const std::string edits = box("edts", full("elst", be(8000) + times(8000, be(1) + be(0) + be(1 << 16))));
  const size_t before = peak_rss_bytes();
  for (const std::string& tracks :
       {greedy_track(11000000), times(2, greedy_track(8000000)), times(60, greedy_track(0xFFFFFFFF)),
        times(60, greedy_track(4000000)), greedy_track(90000, edits)}) {
    const std::string file = box("ftyp", "M4A " + be(0)) + box("moov", tracks) + box("mdat", std::string(100000, '\0'));
    const Stopwatch watch;
    const auto got = read(file);
    EXPECT_FALSE(got);
    EXPECT_NE(got.error().code, Code::kInternal);
    EXPECT_LT(watch.elapsed_ms(), 20000);
  }
  EXPECT_LT(peak_rss_bytes(), before + (size_t{16} << 20));
}

}  // namespace
}  // namespace syrinx
