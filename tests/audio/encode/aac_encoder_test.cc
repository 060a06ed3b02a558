#include "audio/encode/aac_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "audio/decode/recording.h"
#include "tests/audio/ffmpeg_tools.h"
#include "tests/audio/sound_tools.h"

namespace syrinx {
namespace {

using testing::HasSubstr;

constexpr size_t kFrame = 1024;

// Encodes in pieces of `size`; no sink can patch.
std::string encode(int rate_hz, std::span<const float> sound, size_t size) {
  std::vector<std::byte> memory;
  ByteSink sink = memory_sink(memory);
  sink.patch = nullptr;
  auto encoder = AudioEncoder::create(AudioFormat::kAac, {.rate_hz = rate_hz}, std::move(sink));
  EXPECT_TRUE(encoder) << encoder.error().message;
  if (!encoder) return {};
  for (; !sound.empty(); sound = sound.subspan(std::min(size, sound.size())))
    EXPECT_TRUE((*encoder)->write(sound.first(std::min(size, sound.size()))));
  const Status status = (*encoder)->finish();
  EXPECT_TRUE(status) << status.error().message;
  return {reinterpret_cast<const char*>(memory.data()), memory.size()};
}

class AacEncoder : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Rates, AacEncoder, testing::Values(8000, 12000, 16000, 22050, 24000, 44100, 48000),
                         testing::PrintToStringParamName());

TEST_P(AacEncoder, FfmpegReadsIt) {
  const TempFolder folder;
  const int rate_hz = GetParam();
  const std::vector<float> sound = voice_like(static_cast<size_t>(rate_hz) * 2 + 777, rate_hz);
  const std::string file = encode(rate_hz, sound, 2400);
  write_text(folder.file("a.aac"), file);
  const std::vector<float> got = decode_by_ffmpeg(folder, folder.file("a.aac"), 1);
  const size_t frames = (sound.size() + kFrame - 1) / kFrame + 1;  // one of delay
  EXPECT_EQ(got.size(), frames * kFrame);
  const double snr = snr_db(sound, got, kFrame);
  RecordProperty("snr_db", std::to_string(snr));
  EXPECT_GE(snr, 15.0);
  const double bit_rate = 8.0 * static_cast<double>(file.size()) * rate_hz / static_cast<double>(got.size());
  EXPECT_LT(bit_rate, rate_hz < 16000 ? 36000 : 72000);

  const auto read = read_recording(folder.file("a.aac"));  // and so do we
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rate_hz, rate_hz);
  EXPECT_EQ(read->samples, got);
}

TEST_P(AacEncoder, PiecesMakeTheSameStream) {
  const std::vector<float> sound = voice_like(10011, GetParam());
  const std::string whole = encode(GetParam(), sound, sound.size());
  EXPECT_EQ(encode(GetParam(), sound, 1), whole);
  EXPECT_EQ(encode(GetParam(), sound, 1023), whole);
  EXPECT_EQ(encode(GetParam(), sound, 4097), whole);
}

TEST(AacStream, LeavesFrameByFrame) {
  std::vector<std::byte> memory;
  auto encoder = AudioEncoder::create(AudioFormat::kAac, {}, memory_sink(memory));
  ASSERT_TRUE(encoder) << encoder.error().message;
  const std::vector<float> sound = voice_like(24000, 24000);
  size_t left = 0;
  for (size_t begin = 0; begin + 1920 <= sound.size(); begin += 1920) {  // 80 ms
    ASSERT_TRUE((*encoder)->write(std::span(sound).subspan(begin, 1920)));
    if (begin >= 3 * 1920) {
      EXPECT_GT(memory.size(), left) << begin;
    }
    left = memory.size();
  }
  EXPECT_TRUE((*encoder)->finish());
}

TEST(AacStream, InvalidSamplesAreClippedAndCounted) {
  std::vector<std::byte> memory;
  auto encoder = AudioEncoder::create(AudioFormat::kAac, {}, memory_sink(memory));
  ASSERT_TRUE(encoder) << encoder.error().message;
  std::vector<float> sound = voice_like(5000, 24000);
  sound[0] = std::numeric_limits<float>::quiet_NaN();
  sound[2000] = std::numeric_limits<float>::infinity();
  sound[4999] = -2;
  ASSERT_TRUE((*encoder)->write(sound));
  ASSERT_TRUE((*encoder)->finish());
  EXPECT_EQ((*encoder)->clipped_samples(), 3u);
  const auto read = read_recording(memory, "me");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->samples.size(), 6 * kFrame);
}

TEST(AacStream, OfNothingHasNoSound) {
  const std::string file = encode(24000, {}, 1);
  const auto read = read_recording(std::as_bytes(std::span(file)), "me");
  EXPECT_FALSE(read && read->samples.size() > kFrame);
}

TEST(AacStream, TheFirstErrorOfTheSinkEndsIt) {
  const std::vector<float> sound = voice_like(48000, 24000);
  for (const size_t good : {0, 7, 500, 5000}) {
    FailingSink failing(good, false);
    auto encoder = AudioEncoder::create(AudioFormat::kAac, {}, failing.sink);
    ASSERT_TRUE(encoder) << encoder.error().message;
    const Status status = (*encoder)->write(sound);
    ASSERT_FALSE(status) << good;
    EXPECT_THAT(status.error().message, HasSubstr("make room"));
    EXPECT_FALSE((*encoder)->finish());
    EXPECT_EQ(failing.calls_after, 0);
  }
}

TEST(AacStream, RatesThatItHasNot) {
  const auto encoder = AudioEncoder::create(AudioFormat::kAac, {.rate_hz = 23000}, ByteSink());
  ASSERT_FALSE(encoder);
  EXPECT_EQ(encoder.error().code, Code::kUnsupported);
  EXPECT_THAT(encoder.error().message, HasSubstr("AAC cannot carry 23000 Hz"));
  EXPECT_EQ(no_aac({Code::kUnsupported, "x.so is not there"}).message,
            "AAC needs FFmpeg's libraries, and x.so is not there; choose mp3, opus, flac, wav or pcm");
}

TEST(AacStream, NamesAndEndings) {
  EXPECT_EQ(parse_audio_format("aac"), AudioFormat::kAac);
  EXPECT_STREQ(audio_format_name(AudioFormat::kAac), "aac");
  EXPECT_EQ(audio_format_of("a.AAC"), AudioFormat::kAac);
}

}  // namespace
}  // namespace syrinx
