#include "models/pocket_tts/voice_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "../../base/temp_folder.h"
#include "audio/resample.h"
#include "audio/wav.h"
#include "base/mapped_file.h"
#include "base/memory.h"
#include "tensor/safetensors.h"

namespace syrinx::pocket {
namespace {

using testing::HasSubstr;

constexpr int kRate = 24000;
const std::string kData = std::string(SYRINX_TEST_DATA) + "/pocket_tts/";

// An array of the maker's, by name.
std::vector<float> recorded(const std::string& name) {
  static const std::string bytes = read_text(kData + "recordings.safetensors");
  const auto file = Safetensors::parse(std::as_bytes(std::span(bytes)), "recordings");
  EXPECT_TRUE(file) << file.error().message;
  const TensorRef* const tensor = file ? file->find(name) : nullptr;
  EXPECT_NE(tensor, nullptr) << name;
  return tensor == nullptr ? std::vector<float>() : to_f32(tensor->bytes, tensor->dtype);
}
Recording sound_of(const std::string& file) {
  auto sound = read_recording(kData + file + ".wav");
  EXPECT_TRUE(sound) << sound.error().message;
  return sound ? std::move(*sound) : Recording{};
}
void expect_close(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6) << i;
}

class Recordings : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Files, Recordings,
                         testing::Values("stereo_48000", "mono_44100", "bytes_8000", "s24_22050", "s32_24000",
                                         "float_32000", "ulaw_11025"));

TEST_P(Recordings, AreReadAndConvertedLikeTheMakers) {
  const Recording sound = sound_of(GetParam());
  const std::vector<float>& mono = sound.samples;
  expect_close(mono, recorded(std::string(GetParam()) + ".read"));
  const auto converted = resample(mono, sound.rate_hz, kRate);
  ASSERT_TRUE(converted) << converted.error().message;
  if (sound.rate_hz == kRate) {
    EXPECT_EQ(*converted, mono);
  } else {
    expect_close(*converted, recorded(std::string(GetParam()) + ".resampled"));
  }
}

TEST(VoiceRecording, PreparesTheVoiceLikeTheMaker) {
  const auto prepared = prepare_recording(sound_of("voice"), kRate, false, "voice.wav");
  ASSERT_TRUE(prepared) << prepared.error().message;
  expect_close(*prepared, recorded("voice.prepared"));
}

class Pauses : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Inputs, Pauses, testing::Range(0, 6));

TEST_P(Pauses, EndLikeTheMakers) {
  const std::string name = "pause." + std::to_string(GetParam());
  std::vector<float> ended = end_on_pause(recorded(name + ".in"), kRate);
  const std::vector<float> kept = recorded(name + ".kept");
  ASSERT_EQ(static_cast<float>(ended.size()), recorded(name + ".length").at(0));
  ASSERT_GE(ended.size(), kept.size());
  for (size_t i = kept.size(); i < ended.size(); ++i) EXPECT_EQ(ended[i], 0.0f);
  ended.resize(kept.size());
  expect_close(ended, kept);
}

TEST(VoiceRecording, TruncatesToHalfAMinuteOfTheSource) {
  const Recording sound{.rate_hz = 8000, .samples = std::vector<float>(8000 * 31, 0.25f)};
  const auto all = prepare_recording(sound, 8000, false, "v"), half = prepare_recording(sound, 8000, true, "v");
  ASSERT_TRUE(all && half);
  EXPECT_EQ(all->size(), size_t{8000} * 31 + 640);
  EXPECT_EQ(half->size(), size_t{8000} * 30 + 640);
  const auto converted = prepare_recording(sound, 16000, true, "v");
  ASSERT_TRUE(converted);
  EXPECT_EQ(converted->size(), size_t{16000} * 30 + 1280);
}

TEST(VoiceRecording, RefusesUnusableRecordings) {
  const auto expect_fault = [](const Recording& recording, Code code, const char* part) {
    const auto prepared = prepare_recording(recording, kRate, false, "v.wav");
    ASSERT_FALSE(prepared) << part;
    EXPECT_EQ(prepared.error().code, code);
    EXPECT_THAT(prepared.error().message, HasSubstr(part));
  };
  expect_fault({.rate_hz = 8000, .samples = {}}, Code::kInvalidArgument, "'v.wav' contains no audio");
  expect_fault({.rate_hz = 1000, .samples = std::vector<float>(480001)}, Code::kLimitExceeded, "at most 480 s");
  expect_fault({.rate_hz = 8000, .samples = {0, 3e38f}}, Code::kDataLoss, "samples beyond 1000");
  expect_fault({.rate_hz = 999, .samples = {0.5f}}, Code::kLimitExceeded, "999 Hz cannot be converted");
  expect_fault({.rate_hz = 8000, .samples = std::vector<float>(80000)}, Code::kInvalidArgument, "'v.wav' is silent");
  expect_fault({.rate_hz = 8000, .samples = std::vector<float>(80000, 0.0009f)}, Code::kInvalidArgument,
               "its 10.0 s is louder than -60 dB");
  expect_fault({.rate_hz = 8000, .samples = std::vector<float>(1600, 0.5f)}, Code::kInvalidArgument,
               "0.20 s of sound before silence, a voice needs 0.25 s");
  std::vector<float> click(80000);
  std::fill_n(click.begin(), 800, 0.5f);  // a tenth of a second, and much silence after it
  expect_fault({.rate_hz = 8000, .samples = click}, Code::kInvalidArgument, "0.10 s of sound before silence");
}

TEST(VoiceRecording, ReadsFilesOfAnyFormat) {
  const auto read = [](const std::string& name, bool truncate) {
    const std::string bytes = read_text(kData + name);
    return read_voice_recording(std::as_bytes(std::span(bytes)), kRate, truncate, name);
  };
  const auto voice = read("voice.wav", false);
  ASSERT_TRUE(voice) << voice.error().message;
  expect_close(*voice, recorded("voice.prepared"));
  for (const char* name : {"flac_stereo_44100.flac", "mp3_24000.mp3", "vorbis_22050.ogg", "opus_48000.opus"}) {
    const auto other = read(std::string("../audio/") + name, true);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_NEAR(static_cast<double>(other->size()) / kRate, 0.4 + 0.08, 0.05) << name;
  }
  EXPECT_THAT(read("README.md", true).error().message, HasSubstr("'README.md' is not an audio format"));
}

// Three hours say so at once: the length of a WAV file is known before its samples are read.
TEST(VoiceRecording, RefusesThreeHours) {
  const TempFolder folder;
  const std::string path = folder.file("long.wav");
  const uint64_t data_bytes = uint64_t{3} * 3600 * 8000 * 2;
  const auto header = wav_header(8000, data_bytes);
  write_text(path, std::string(reinterpret_cast<const char*>(header.data()), header.size()));
  std::filesystem::resize_file(path, header.size() + data_bytes);  // sparse
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  const auto whole = read_voice_recording(file->bytes(), kRate, false, "long");
  const auto begin = read_voice_recording(file->bytes(), kRate, true, "long");
  ASSERT_FALSE(whole || begin);
  EXPECT_THAT(whole.error().message, HasSubstr("'long' has 10800.0 s of sound; at most 480 s"));
  EXPECT_THAT(begin.error().message, HasSubstr("has 10800.0 s of sound; at most 3600 s"));
}

void put_bits(std::string& bits, uint64_t value, int count) {
  for (int i = count - 1; i >= 0; --i) bits += (value >> i & 1) != 0 ? '1' : '0';
}
std::string bytes_of(const std::string& bits) {
  std::string bytes;
  for (size_t i = 0; i < bits.size(); i += 8) bytes += static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
  return bytes;
}
uint64_t crc(const std::string& bytes, uint64_t polynomial, int width) {
  uint64_t sum = 0;
  for (const char byte : bytes) {
    sum ^= uint64_t{static_cast<unsigned char>(byte)} << (width - 8);
    for (int i = 0; i < 8; ++i) sum = (sum << 1) ^ ((sum >> (width - 1) & 1) != 0 ? polynomial : 0);
    sum &= (uint64_t{1} << width) - 1;
  }
  return sum;
}

// RFC 9639: one sample, 0.5, for so many blocks of 65535, each of them 12 bytes.
std::string steady_flac(int rate_hz, size_t blocks) {
  std::string header, frame;
  put_bits(header, 0x80000022, 32);  // the last block of metadata, a STREAMINFO of 34 bytes
  put_bits(header, 0xFFFFFFFF, 32);  // the least and the most samples of a block
  put_bits(header, 0, 48);           // their bytes are not known
  put_bits(header, static_cast<uint64_t>(rate_hz), 20);
  put_bits(header, 15, 8);                              // one channel of 16 bits
  for (int i = 0; i < 41; ++i) put_bits(header, 0, 4);  // neither length nor hash are known
  put_bits(frame, 0xFFF8700800, 40);                    // 16 bits tell the length, the header the rate; number 0
  put_bits(frame, 0xFFFE, 16);
  put_bits(frame, crc(bytes_of(frame), 0x07, 8), 8);
  put_bits(frame, 0x004000, 24);  // all the samples are 0x4000
  put_bits(frame, crc(bytes_of(frame), 0x8005, 16), 16);
  const std::string block = bytes_of(frame);
  std::string file = "fLaC" + bytes_of(header);
  for (size_t i = 0; i < blocks; ++i) file += block;
  return file;
}

// Five minutes at the highest rate: 20 kB that are 460 MB of samples.
TEST(VoiceRecording, OfALongSoundTheBeginningAloneIsInMemory) {
  constexpr int kHighest = 384000;
  std::string file = steady_flac(kHighest, size_t{300} * kHighest / 65535);
  const uint64_t before = peak_rss_bytes();
  const auto read = read_voice_recording(std::as_bytes(std::span(file)), kRate, true, "long");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_LT(peak_rss_bytes() - before, uint64_t{200} << 20);
  EXPECT_EQ(read->size(), size_t{kRate} * 30 + 1920);
  EXPECT_NEAR((*read)[size_t{kRate} * 15], 0.5, 1e-3);
  file.back() ^= 1;  // of the last block's checksum
  const auto cut = read_voice_recording(std::as_bytes(std::span(file)), kRate, true, "long");
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("'long' is cut off or damaged"));
}

// An operator's own recording is kept whole, at the voice's rate: here 11 MB of 190.
TEST(VoiceRecording, OfAWholeSoundNoMoreIsInMemoryThanTheVoiceNeeds) {
  constexpr int kHighest = 384000;
  constexpr size_t kBlocks = size_t{120} * kHighest / 65535;
  const std::string file = steady_flac(kHighest, kBlocks);
  const uint64_t before = peak_rss_bytes();
  const auto read = read_voice_recording(std::as_bytes(std::span(file)), kRate, false, "long");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_LT(peak_rss_bytes() - before, uint64_t{150} << 20);
  const size_t samples = kBlocks * 65535;
  EXPECT_NEAR(static_cast<double>(read->size()), static_cast<double>(samples) / 16 + 1920, 480);
  EXPECT_NEAR((*read)[size_t{kRate} * 60], 0.5, 1e-3);
}

}  // namespace
}  // namespace syrinx::pocket
