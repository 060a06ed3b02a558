#include "audio/decode/sound_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "audio/decode/recording.h"
#include "base/watched_pages.h"
#include "tests/audio/part_tools.h"
#include "tests/audio/sound_tools.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

using testing::HasSubstr;

struct Kind {
  const char* name;
  int format;
  int channels;
  int rate_hz;
  double snr_db;  // at least, of the mean of the channels
};

std::vector<float> interleaved(std::span<const float> mono, int channels) {
  std::vector<float> out;
  for (const float value : mono)
    for (int c = 0; c < channels; ++c) out.push_back(c % 2 == 0 ? value : 0.5f * value);
  return out;
}

void write_sound(const std::string& path, const Kind& kind, std::span<const float> samples) {
  SF_INFO info{};
  info.samplerate = kind.rate_hz;
  info.channels = kind.channels;
  info.format = kind.format;
  SNDFILE* const file = sf_open(path.c_str(), SFM_WRITE, &info);
  ASSERT_NE(file, nullptr) << kind.name << ": " << sf_strerror(nullptr);
  ASSERT_EQ(sf_write_float(file, samples.data(), static_cast<sf_count_t>(samples.size())),
            static_cast<sf_count_t>(samples.size()));
  sf_close(file);
}

// Containers that say how long they are.
const Kind kSized[] = {{"aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 2, 44100, 80},
                       {"aiff_float", SF_FORMAT_AIFF | SF_FORMAT_FLOAT, 1, 16000, 120},
                       {"au_mulaw", SF_FORMAT_AU | SF_FORMAT_ULAW, 1, 8000, 30},
                       {"au_little", SF_FORMAT_AU | SF_FORMAT_PCM_24 | SF_ENDIAN_LITTLE, 2, 48000, 120},
                       {"caf_alac", SF_FORMAT_CAF | SF_FORMAT_ALAC_16, 2, 44100, 75},
                       {"caf_24", SF_FORMAT_CAF | SF_FORMAT_PCM_24, 1, 22050, 120},
                       {"w64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, 2, 32000, 80},
                       {"rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16, 1, 16000, 80},
                       {"wav_double", SF_FORMAT_WAV | SF_FORMAT_DOUBLE, 8, 96000, 120},
                       {"wav_adpcm", SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, 1, 16000, 20},
                       {"wav_gsm", SF_FORMAT_WAV | SF_FORMAT_GSM610, 1, 8000, 8}};
// Containers that do not.
const Kind kUnsized[] = {{"nist", SF_FORMAT_NIST | SF_FORMAT_PCM_16, 1, 16000, 80},
                         {"voc", SF_FORMAT_VOC | SF_FORMAT_PCM_16, 1, 16000, 80}};

std::string kind_name(const testing::TestParamInfo<Kind>& info) { return info.param.name; }

class Kinds : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Sized, Kinds, testing::ValuesIn(kSized), kind_name);
INSTANTIATE_TEST_SUITE_P(Unsized, Kinds, testing::ValuesIn(kUnsized), kind_name);
class SizedKinds : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Sized, SizedKinds, testing::ValuesIn(kSized), kind_name);

TEST_P(Kinds, AreReadAsTheyWereWritten) {
  const Kind& kind = GetParam();
  const TempFolder folder;
  const std::vector<float> sound = voice_like(static_cast<size_t>(kind.rate_hz), kind.rate_hz);
  write_sound(folder.file("sound"), kind, interleaved(sound, kind.channels));
  const auto got = read_recording(folder.file("sound"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->rate_hz, kind.rate_hz);
  EXPECT_GE(got->samples.size(), sound.size());  // whole blocks of some codings
  EXPECT_LE(got->samples.size(), sound.size() + 1024);
  std::vector<float> expected(sound);
  if (kind.channels > 1)
    for (float& value : expected) value *= 0.75f;
  EXPECT_GT(snr_db(expected, got->samples), kind.snr_db);
}

TEST_P(SizedKinds, AreRefusedWhenCutOff) {
  const Kind& kind = GetParam();
  const TempFolder folder;
  write_sound(folder.file("sound"), kind, interleaved(voice_like(16000, kind.rate_hz), kind.channels));
  const std::string file = read_text(folder.file("sound"));
  for (const size_t percent : {10, 50, 90, 99}) {
    write_text(folder.file("cut"), file.substr(0, file.size() * percent / 100));
    const auto got = read_recording(folder.file("cut"));
    ASSERT_FALSE(got) << percent;
    EXPECT_EQ(got.error().code, Code::kDataLoss) << got.error().message;
    EXPECT_THAT(got.error().message, HasSubstr("cut off"));
  }
}

TEST_P(SizedKinds, AreReadAsFarAsWhole) {
  const Kind& kind = GetParam();
  const TempFolder folder;
  const std::vector<float> sound = voice_like(16000, kind.rate_hz);
  write_sound(folder.file("sound"), kind, interleaved(sound, kind.channels));
  const std::string file = read_text(folder.file("sound"));
  const ReadPart whole = read_part(file);
  ASSERT_TRUE(whole.status) << whole.status.error().message;
  for (const size_t percent : {50, 90, 99}) {
    const ReadPart part = read_part(file.substr(0, file.size() * percent / 100));
    ASSERT_TRUE(part.status) << part.status.error().message;
    ASSERT_EQ(part.warnings.size(), 1u);
    EXPECT_THAT(part.warnings[0], HasSubstr("'me' is cut off"));
    ASSERT_LE(part.samples.size(), whole.samples.size());
    EXPECT_GT(part.samples.size() + 8192, whole.samples.size() * percent / 100);
    const size_t sure =
        part.samples.size() - std::min<size_t>(part.samples.size(), 1024);  // but a block of some codings
    EXPECT_TRUE(
        std::equal(part.samples.begin(), part.samples.begin() + static_cast<ptrdiff_t>(sure), whole.samples.begin()));
  }
}

// The name of the field, where it lies behind that, and its bytes.
struct SizeField {
  const char* kind;
  const char* tag;
  size_t behind;
  size_t bytes;
};

// Writers that could not go back to the head leave 0 or -1 there; the sound reaches to the end.
TEST(SoundFile, UnknownSizesReachToTheEnd) {
  const SizeField kFields[] = {{"aiff", "SSND", 4, 4},      {"aiff_float", "SSND", 4, 4}, {"au_mulaw", ".snd", 8, 4},
                               {"au_little", "dns.", 8, 4}, {"caf_24", "data", 4, 8},     {"w64", "data", 16, 8},
                               {"rf64", "ds64", 16, 8},     {"wav_double", "data", 4, 4}, {"wav_adpcm", "data", 4, 4},
                               {"wav_gsm", "data", 4, 4}};
  for (const SizeField& field : kFields) {
    const Kind& kind =
        *std::ranges::find_if(kSized, [&](const Kind& one) { return std::string(one.name) == field.kind; });
    const TempFolder folder;
    write_sound(folder.file("sound"), kind, interleaved(voice_like(16000, kind.rate_hz), kind.channels));
    std::string file = read_text(folder.file("sound"));
    const ReadPart whole = read_part(file);
    ASSERT_TRUE(whole.status) << whole.status.error().message;
    const size_t at = file.find(field.tag);
    ASSERT_NE(at, std::string::npos);
    for (const char fill : {'\0', '\xff'}) {
      for (const bool all_too : {false, true}) {
        std::fill_n(file.begin() + static_cast<ptrdiff_t>(at + field.behind), field.bytes, fill);
        if (all_too && file.starts_with("RIFF")) std::fill_n(file.begin() + 4, 4, fill);
        if (all_too && file.starts_with("FORM")) std::fill_n(file.begin() + 4, 4, fill);
        if (all_too && file.starts_with("riff")) std::fill_n(file.begin() + 16, 8, fill);
        if (all_too && file.starts_with("RF64")) std::fill_n(file.begin() + 20, 8, fill);
        const ReadPart part = read_part(file);
        ASSERT_TRUE(part.status) << kind.name << ": " << part.status.error().message;
        EXPECT_TRUE(part.warnings.empty()) << kind.name << ": " << part.warnings[0];
        ASSERT_GE(part.samples.size(), whole.samples.size()) << kind.name;
        EXPECT_LE(part.samples.size(), whole.samples.size() + 1024) << kind.name;  // chunks behind it
        EXPECT_TRUE(std::equal(whole.samples.begin(), whole.samples.end(), part.samples.begin())) << kind.name;
      }
    }
  }
}

// Integers that were written as floats without being divided.
TEST(SoundFile, FloatsOfIntegersAreScaled) {
  const std::vector<float> sound = voice_like(16000, 16000);
  const TempFolder folder;
  const std::string path = folder.file("sound");
  for (const int format :
       {SF_FORMAT_WAV | SF_FORMAT_FLOAT, SF_FORMAT_WAV | SF_FORMAT_DOUBLE, SF_FORMAT_AIFF | SF_FORMAT_FLOAT}) {
    for (const double full : {0x1p15, 0x1p31}) {
      std::vector<float> written;
      for (const float sample : sound) written.push_back(static_cast<float>(std::round(sample * full)));
      write_sound(path, {"", format, 1, 16000, 0}, written);
      const auto got = read_recording(path);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_GT(snr_db(sound, got->samples), 70);
    }
    std::vector<float> percent;
    for (const float sample : sound) percent.push_back(sample * 100);
    write_sound(path, {"", format, 1, 16000, 0}, percent);
    const auto refused = read_recording(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kDataLoss);
    EXPECT_THAT(refused.error().message, HasSubstr("where full scale is 1"));
  }
}

TEST(SoundFile, ComesInBlocksOfBoundedSize) {
  const TempFolder folder;
  const std::vector<float> sound = voice_like(200000, 48000);
  for (const int format : {SF_FORMAT_WAV | SF_FORMAT_FLOAT, SF_FORMAT_AIFF | SF_FORMAT_FLOAT}) {
    write_sound(folder.file("sound"), {"", format, 1, 48000, 0}, sound);
    std::vector<float> got;
    size_t largest = 0;
    int begun = 0;
    const SoundSink sink{.begin =
                             [&](int rate_hz, std::optional<uint64_t> frames) {
                               ++begun;
                               EXPECT_EQ(rate_hz, 48000);
                               EXPECT_EQ(frames, sound.size());
                               return Status();
                             },
                         .add =
                             [&](std::span<const float> block) {
                               largest = std::max(largest, block.size());
                               got.insert(got.end(), block.begin(), block.end());
                               return Status();
                             }};
    const Status status = read_sound(folder.file("sound"), {}, sink);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(got, sound);
    EXPECT_LE(largest, 4096u);
  }
}

// Floats are read twice; the first time leaves memory and may be stopped as the second.
TEST(SoundFile, FirstLookAtFloatsIsBounded) {
  constexpr size_t kFrames = size_t{24} << 20;  // 96 MB, of which nothing is stored
  const auto mapped_kb = [] {
    std::ifstream status("/proc/self/status");
    long sum = 0;
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("RssFile:") || line.starts_with("RssShmem:")) sum += std::stol(line.substr(9));
    return sum;
  };
  const TempFolder folder;
  const std::string path = folder.file("sound");
  for (const int container : {SF_FORMAT_WAV, SF_FORMAT_AU}) {
    write_sound(path, {"", container | SF_FORMAT_FLOAT, 1, 384000, 0}, std::vector<float>(1));
    const size_t head = std::filesystem::file_size(path) - 4;
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(container == SF_FORMAT_WAV ? static_cast<std::streamoff>(head - 4) : 8);
      file.write("\xff\xff\xff\xff", 4);  // to the end
    }
    std::filesystem::resize_file(path, head + 4 * kFrames);
    const long before_kb = mapped_kb();
    long most_kb = 0;
    uint64_t looked = 0, added = 0;
    SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                   .add =
                       [&](std::span<const float> samples) {
                         if (added == 0) most_kb = std::max(most_kb, mapped_kb());
                         added += samples.size();
                         return Status();
                       },
                   .looked =
                       [&](uint64_t samples) {
                         looked += samples;
                         return Status();
                       }};
    const Status whole = read_sound(path, {}, sink);
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_EQ(looked, kFrames);
    EXPECT_EQ(added, kFrames);
    EXPECT_LT(most_kb - before_kb, 40 << 10);
    added = 0;
    sink.looked = [](uint64_t) -> Status { return fail(Code::kCancelled, "enough"); };
    const Status stopped = read_sound(path, {}, sink);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, Code::kCancelled);
    EXPECT_EQ(added, 0u);
  }
}

TEST(SoundFile, TheSinkMayStopIt) {
  const TempFolder folder;
  write_sound(folder.file("sound"), {"", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1, 16000, 0}, voice_like(50000, 16000));
  int blocks = 0;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add = [&](std::span<const float>) -> Status {
                         if (++blocks == 3) return fail(Code::kCancelled, "enough");
                         return {};
                       }};
  const Status status = read_sound(folder.file("sound"), {}, sink);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
  EXPECT_EQ(blocks, 3);
}

// Bytes that are gone are no audio: for every reader, at every position, and though no page is missing.
TEST(SoundFile, OneThatIsShortenedAmidItsReadingIsAnError) {
  catch_missing_pages();
  const TempFolder folder;
  const std::string path = folder.file("sound");
  for (const bool is_by_one : {false, true}) {
    for (const int container : {SF_FORMAT_WAV, SF_FORMAT_AIFF, SF_FORMAT_FLAC}) {
      write_sound(path, {"", container | SF_FORMAT_PCM_16, 1, 16000, 0}, voice_like(500000, 16000));
      int blocks = 0;
      const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                           .add = [&](std::span<const float>) -> Status {
                             if (++blocks == 1)
                               std::filesystem::resize_file(path,
                                                            is_by_one ? std::filesystem::file_size(path) - 1 : 5000);
                             return {};
                           }};
      const Status status = read_sound(path, {}, sink);
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, Code::kDataLoss);
      EXPECT_NE(status.error().message.find("became shorter"), std::string::npos) << status.error().message;
      EXPECT_EQ(blocks, 1) << "zeros in place of what was cut off are heard by nobody";
    }
  }
}

TEST(SoundFile, BoundsHugeSamples) {
  const TempFolder folder;
  std::vector<float> sound(100, 0.1f);
  sound[50] = -1e30f;
  for (const int container : {SF_FORMAT_WAV, SF_FORMAT_AIFF}) {
    write_sound(folder.file("sound"), {"", container | SF_FORMAT_FLOAT, 1, 16000, 0}, sound);
    const auto read = read_recording(folder.file("sound"));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->samples[50], -1000.0f);
    EXPECT_EQ(read->samples[49], 0.1f);
  }
}

TEST(SoundFile, RefusesNonFiniteAndExcessSamples) {
  const TempFolder folder;
  std::vector<float> sound(9000, 0.1f);
  sound[8000] = std::numeric_limits<float>::quiet_NaN();
  for (const int container : {SF_FORMAT_WAV, SF_FORMAT_AIFF}) {
    const std::string path = folder.file("sound");
    write_sound(path, {"", container | SF_FORMAT_FLOAT, 1, 16000, 0}, sound);
    EXPECT_EQ(read_recording(path).error().code, Code::kDataLoss);
    EXPECT_THAT(read_recording(path).error().message, HasSubstr("not a number"));
    write_sound(path, {"", container | SF_FORMAT_FLOAT, 9, 16000, 0}, sound);
    EXPECT_EQ(read_recording(path).error().code, Code::kLimitExceeded);
    write_sound(path, {"", container | SF_FORMAT_FLOAT, 1, 16000, 0}, std::vector<float>(20000));
    EXPECT_EQ(read_recording(path, {.max_seconds = 1}).error().code, Code::kLimitExceeded);
    write_sound(path, {"", container | SF_FORMAT_FLOAT, 1, 16000, 0}, {});
    EXPECT_EQ(read_recording(path).error().code, Code::kDataLoss);
    EXPECT_THAT(read_recording(path).error().message, HasSubstr("no audio"));
  }
}

}  // namespace
}  // namespace syrinx
