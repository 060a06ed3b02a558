#include "audio/libav.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "audio/decode/libav_decoder.h"
#include "audio/decode/recording.h"
#include "audio/decode/sound_file.h"
#include "audio/guards/sound_container.h"
#include "tests/audio/ffmpeg_tools.h"
#include "tests/audio/sound_tools.h"

namespace syrinx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// ffmpeg's words after the input, a WAV of one channel at the rate.
struct Case {
  const char* name;
  const char* words;
  const char* ending;
  int rate_hz;
  int channels = 1;
};

const Case kWhole[] = {
    {"opus", "-c:a libopus", "webm", 48000},
    {"vorbis_stereo", "-c:a libvorbis -af 'pan=stereo|c0=c0|c1=0.5*c0'", "webm", 44100, 2},
    {"aac_stereo", "-c:a aac -b:a 128k -af 'pan=stereo|c0=c0|c1=0.5*c0'", "m4a", 44100, 2},
    {"aac_of_a_phone", "-c:a aac -b:a 64k -movflags +faststart", "mp4", 16000},
    {"aac_with_video", "-f lavfi -i testsrc=duration=2:size=64x48:rate=5 -map 1 -map 0 -c:v mpeg4 -c:a aac", "mp4",
     48000},
    {"alac_24", "-c:a alac -sample_fmt s32p", "m4a", 44100},
    {"alac_16", "-c:a alac -sample_fmt s16p", "m4a", 22050},
    {"mp3", "-c:a libmp3lame -b:a 96k", "mp4", 24000},
    {"flac", "-c:a flac", "mka", 16000},
    {"pcm_8_channels", "-c:a pcm_s24le -ac 8", "mov", 32000, 8},
    {"pcm_floats", "-c:a pcm_f32le", "mkv", 96000},
    {"pcm_doubles", "-c:a pcm_f64le", "mkv", 8000},
    {"pcm_bytes", "-c:a pcm_u8", "mkv", 8000},
    {"mulaw", "-c:a pcm_mulaw", "mov", 8000},
    {"aac_of_quicktime", "-c:a aac -b:a 64k -metadata title=Notes -metadata artist=me", "mov", 44100},
    {"aac_of_a_film", "-f lavfi -i testsrc=duration=2:size=64x48:rate=50 -map 1 -map 0 -c:v mpeg4 -bf 2 -c:a aac",
     "mov", 48000}};
// As browsers and broadcasts have it: parts of known size in a whole whose size is not known.
const Case kLive[] = {
    {"adts", "-c:a aac -b:a 96k", "aac", 24000},
    {"live_opus", "-c:a libopus -live 1 -cluster_time_limit 200", "webm", 48000},
    {"fragments", "-c:a aac -frag_duration 200000 -movflags +empty_moov+default_base_moof", "mp4", 48000},
    {"segments", "-c:a aac -frag_duration 200000 -movflags +dash+empty_moov+default_base_moof", "mp4", 44100}};

std::string make(const TempFolder& folder, const Case& made, double seconds) {
  const auto samples = static_cast<size_t>(seconds * made.rate_hz);
  write_wav_file(folder.file("in.wav"), voice_like(samples, made.rate_hz), made.rate_hz);
  const std::string path = folder.file(std::string("sound.") + made.ending);
  const std::string in = "-i " + folder.file("in.wav") + " ";
  run_ffmpeg(in + made.words + " -fflags +bitexact " + path);
  return path;
}

Result<Recording> read(const std::string& file, const SoundLimits& limits = {}) {
  return read_recording(std::as_bytes(std::span(file)), "me", limits);
}
void expect_fault(const std::string& file, Code code, const std::string& part, const SoundLimits& limits = {}) {
  const auto got = read(file, limits);
  ASSERT_FALSE(got) << part;
  EXPECT_EQ(got.error().code, code) << got.error().message;
  EXPECT_THAT(got.error().message, AllOf(HasSubstr(part), HasSubstr("'me'")));
}

std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }
class LibavKinds : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Whole, LibavKinds, testing::ValuesIn(kWhole), case_name);
INSTANTIATE_TEST_SUITE_P(Live, LibavKinds, testing::ValuesIn(kLive), case_name);
class WholeLibavKinds : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Whole, WholeLibavKinds, testing::ValuesIn(kWhole), case_name);
class LiveLibavKinds : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Live, LiveLibavKinds, testing::ValuesIn(kLive), case_name);

TEST_P(LibavKinds, AreReadAsFfmpegDecodesThem) {
  const TempFolder folder;
  const std::string path = make(folder, GetParam(), 2);
  const auto got = read_recording(path);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->rate_hz, GetParam().rate_hz);
  const std::vector<float> expected = decode_by_ffmpeg(folder, path, GetParam().channels);
  ASSERT_EQ(got->samples.size(), expected.size());
  EXPECT_NEAR(got->seconds(), 2, 0.1);
  double worst = 0, loudest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got->samples[i]) - expected[i]));
    loudest = std::max(loudest, std::abs(static_cast<double>(expected[i])));
  }
  EXPECT_GT(loudest, 0.1 / GetParam().channels);
  EXPECT_LE(worst, 1e-6);
  RecordProperty("worst", std::to_string(worst));
}

TEST_P(WholeLibavKinds, AreRefusedWhenCutOff) {
  const TempFolder folder;
  const std::string file = read_text(make(folder, GetParam(), 0.1));
  ASSERT_TRUE(read(file)) << read(file).error().message;
  for (size_t size = 0; size < file.size(); size += 1 + size / 512) {
    const auto got = read(file.substr(0, size));
    ASSERT_FALSE(got) << size << " of " << file.size() << " bytes gave " << got->seconds() << " s";
    EXPECT_THAT(got.error().message, HasSubstr("'me'"));
  }
  expect_fault(file.substr(0, file.size() - 1), Code::kDataLoss, "cut off");
}

// A recording without a length that is cut off loses its end, and nothing else changes.
TEST_P(LiveLibavKinds, EndBehindAnyPart) {
  const TempFolder folder;
  const std::string file = read_text(make(folder, GetParam(), 0.5));
  const auto whole = read(file);
  ASSERT_TRUE(whole) << whole.error().message;
  size_t good = 0;
  for (size_t size = 0; size < file.size(); size += 1 + size / 2048) {
    const auto got = read(file.substr(0, size));
    if (!got) continue;
    ++good;
    ASSERT_LE(got->samples.size(), whole->samples.size()) << size;
    ASSERT_TRUE(std::equal(got->samples.begin(), got->samples.end(), whole->samples.begin())) << size;
  }
  EXPECT_LT(good, size_t{100});
}

TEST_P(LibavKinds, EndInASentenceWhenDamaged) {
  const TempFolder folder;
  const std::string file = read_text(make(folder, GetParam(), 0.1));
  const SoundLimits limits{.max_seconds = 5};
  size_t refused = 0;
  for (size_t at = 0; at < file.size(); at += 1 + at / 256) {
    for (const char change : {'\x01', '\x80', '\xFF'}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      const auto got = read(damaged, limits);
      if (got) {
        EXPECT_LE(got->seconds(), limits.max_seconds);
        continue;
      }
      ++refused;
      EXPECT_THAT(got.error().message, HasSubstr("'me'"));
      EXPECT_NE(got.error().code, Code::kInternal) << got.error().message;
      EXPECT_LT(got.error().message.size(), 300u);
    }
  }
  EXPECT_GT(refused, 3u);
}

// By the container's times: a track that begins late, and one with a pause that has no packets.
TEST(Libav, GapsAreSilence) {
  const TempFolder folder;
  const std::string picture = "-f lavfi -i testsrc=duration=6:size=64x48:rate=5 -c:v mpeg4 ";
  for (const char* const ending : {"mp4", "mkv"}) {
    const Case late{"late", "-map 1 -map 0 -af asetpts=PTS+3/TB -c:a aac", ending, 16000};
    const auto got = read(read_text(make(folder, {late.name, (picture + late.words).c_str(), ending, 16000}, 2)));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_NEAR(got->seconds(), 5, 0.15) << ending;
    const auto loud = std::ranges::find_if(got->samples, [](float sample) { return std::abs(sample) > 0.05f; });
    EXPECT_NEAR(static_cast<double>(loud - got->samples.begin()) / 16000, 3, 0.15) << ending;
  }
  const Case paused{"paused", "-af \"asetpts='PTS+if(gt(T,1),4/TB,0)'\" -c:a libopus", "webm", 48000};
  const auto got = read(read_text(make(folder, paused, 2)));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_NEAR(got->seconds(), 6, 0.2);
}

TEST(Libav, RefusesUnsupportedTracks) {
  const TempFolder folder;
  const Case ac3{"ac3", "-c:a ac3", "mp4", 48000},
      picture{"silent", "-f lavfi -i testsrc=duration=1 -map 1 -c:v mpeg4", "mp4", 48000};
  expect_fault(read_text(make(folder, ac3, 0.2)), Code::kUnsupported, "coded as ac3; AAC, ALAC");
  expect_fault(read_text(make(folder, picture, 0.2)), Code::kDataLoss, "contains no audio");
  const Case slow{"", "-c:a aac", "aac", 24000}, fast{"", "-c:a aac", "aac", 48000};
  const std::string joined = read_text(make(folder, slow, 0.2)) + read_text(make(folder, fast, 0.2));
  expect_fault(joined, Code::kUnsupported, "changes its rate");
  const std::string tagged = std::string("ID3\4\0\0\0\0\0\1", 10) + '\0' + read_text(make(folder, slow, 0.2));
  EXPECT_TRUE(read(tagged)) << read(tagged).error().message;
}

// FFmpeg's index has an entry for a thousand samples of these, so that they are no more than others.
TEST(Libav, ReadsMinutesOfPlainSamples) {
  const TempFolder folder;
  const Case plain{"plain", "-c:a pcm_u8", "mov", 48000};
  const auto got = read(read_text(make(folder, plain, 60)));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->samples.size(), 60u * 48000);
}

// A packet of a Matroska file can be all of it; what goes on are blocks.
TEST(Libav, GivesLargePacketsOnInBlocks) {
  const TempFolder folder;
  const Case large{"large", "-af asetnsamples=n=1000000:p=0,pan='stereo|c0=c0|c1=0.5*c0' -c:a pcm_u8", "mkv", 48000};
  const std::string path = make(folder, large, 30);
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
  EXPECT_LE(longest, size_t{16384} + 48000 / 20);  // a block, and what waited for a window of channels
  const std::vector<float> expected = decode_by_ffmpeg(folder, path, 2);
  EXPECT_EQ(all.size(), 30u * 48000);
  EXPECT_EQ(all, expected);
}

// As older cameras have it: no `ftyp`, the first box is nothing or the sound itself.
TEST(Libav, ReadsQuickTimeWithoutAHead) {
  const TempFolder folder;
  const Case plain{"plain", "-c:a pcm_s16be", "mov", 16000};
  std::string file = read_text(make(folder, plain, 0.5));
  const auto whole = read(file);
  ASSERT_TRUE(whole) << whole.error().message;
  ASSERT_EQ(file.substr(4, 4), "ftyp");
  file.replace(4, 4, "wide");
  const auto got = read(file);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->samples, whole->samples);
  for (const char* const name : {"moov", "mdat"})
    expect_fault(std::string("\0\0\0\x10", 4) + name + std::string(8, '\1'), Code::kDataLoss, "damaged");
}

TEST(Libav, KeepsTheLimits) {
  const TempFolder folder;
  const std::string file = read_text(make(folder, kWhole[2], 1));
  expect_fault(file, Code::kLimitExceeded, "more than", {.max_seconds = 0.5});
  expect_fault(file, Code::kLimitExceeded, "channels", {.max_channels = 1});
  expect_fault(file, Code::kLimitExceeded, "rate", {.max_rate_hz = 16000});
}

// As libraries that were built for something else; what was never opened is not closed as if it were.
TEST(Libav, SaysWhenTheLibrariesLackAReader) {
  const auto found = find_libav();
  ASSERT_TRUE(found);
  Libav libav = **found;
  libav.av_find_input_format = [](const char*) -> const AVInputFormat* { return nullptr; };
  const TempFolder folder;
  const std::string file = read_text(make(folder, kWhole[2], 0.1)), name = "me";
  const SoundLimits limits;
  const SoundSink sink;
  MonoMixer mixer(limits, name, sink);
  const Status got = decode_libav(libav, std::as_bytes(std::span(file)), SoundContainer::kMp4, name, mixer);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kUnsupported);
  EXPECT_EQ(got.error().message, "FFmpeg's libraries here were built without what reads 'me'");
}

// The names are those of no machine.
TEST(Libav, MissingLibraryIsNamed) {
  EXPECT_TRUE(find_libav());
  LibavNames names = libav_names();
  names.format = "libavformat.so.7";
  const auto libav = load_libav(names);
  ASSERT_FALSE(libav);
  const Error error = no_decoder(SoundContainer::kMatroska, "me", libav.error());
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_EQ(error.message,
            "'me' is WebM or Matroska, which needs FFmpeg's libraries, and libavformat.so.7 cannot be loaded (Debian's "
            "package libavformat7 brings it); WAV, FLAC, MP3 and Ogg need none of them");
  names = libav_names();
  names.codec = names.util;  // a library, but another one
  EXPECT_EQ(load_libav(names).error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace syrinx
