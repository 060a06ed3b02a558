#include "audio/decode/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ogg/ogg.h>

#include <algorithm>
#include <cmath>

#include "audio/encode/encoder.h"
#include "base/scoped_file.h"
#include "tests/audio/part_tools.h"
#include "tests/audio/sound_tools.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kData = std::string(SYRINX_TEST_DATA) + "/audio/";

Result<Recording> read(const std::string& file, const SoundLimits& limits = {}) {
  return read_recording(std::as_bytes(std::span(file)), "me", limits);
}
void expect_fault(const std::string& file, Code code, const std::string& part, const SoundLimits& limits = {}) {
  const auto recording = read(file, limits);
  ASSERT_FALSE(recording) << part;
  EXPECT_EQ(recording.error().code, code) << recording.error().message;
  EXPECT_THAT(recording.error().message, HasSubstr(part));
  EXPECT_THAT(recording.error().message, HasSubstr("'me'"));
}
std::string file_of(const std::string& name) { return read_text(kData + name); }
std::string id3_tag(size_t body, char flags = 0) {
  const size_t footer = (flags & 0x10) != 0 ? 10 : 0;
  return std::string("ID3\4\0", 5) + flags + '\0' + '\0' + static_cast<char>(body >> 7) +
         static_cast<char>(body & 127) + std::string(body + footer, '\0');
}

// The same stream of Ogg under another number.
std::string renumbered(std::string file, char serial) {
  for (size_t at = 0; at < file.size();) {
    auto* const bytes = reinterpret_cast<unsigned char*>(file.data() + at);
    const size_t head = 27 + bytes[26];
    ogg_page page{bytes, static_cast<long>(head), bytes + head, 0};
    for (size_t i = 27; i < head; ++i) page.body_len += bytes[i];
    file[at + 14] = serial;
    ogg_page_checksum_set(&page);
    at += head + static_cast<size_t>(page.body_len);
  }
  return file;
}

struct Case {
  const char* file;
  int rate_hz;
  int cut_samples;  // FFmpeg leaves the padding at the end of a Vorbis stream, its last page says how much it is
  double bound;     // besides half a step of the reference's 16 bits: what single precision and its order of sums cost
  size_t least_parts = 0;  // of 100 cuts; these files of Ogg have a single page of sound
};

class Formats : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Files, Formats,
    testing::Values(Case{"flac_24000.flac", 24000, 0, 0, 20}, Case{"flac_stereo_44100.flac", 44100, 0, 1e-7, 50},
                    Case{"mp3_24000.mp3", 24000, 0, 1e-6, 50}, Case{"mp3_stereo_44100.mp3", 44100, 0, 1e-6, 50},
                    Case{"vorbis_22050.ogg", 22050, 268, 1e-6}, Case{"vorbis_stereo_48000.ogg", 48000, 256, 1e-6},
                    Case{"opus_48000.opus", 48000, 0, 1e-6}, Case{"opus_stereo_48000.ogg", 48000, 0, 1e-6}),
    [](const auto& info) {
      const std::string file = info.param.file;
      return file.substr(0, file.find('.'));
    });

TEST_P(Formats, AreReadAsFfmpegDecodesThem) {
  const std::string file = GetParam().file;
  const auto got = read_recording(kData + file);
  ASSERT_TRUE(got) << got.error().message;
  const auto expected = read_recording(kData + file.substr(0, file.find('.')) + ".wav");
  ASSERT_TRUE(expected) << expected.error().message;
  EXPECT_EQ(got->rate_hz, GetParam().rate_hz);
  ASSERT_EQ(got->samples.size() + static_cast<size_t>(GetParam().cut_samples), expected->samples.size());
  double worst = 0, loudest = 0;
  for (size_t i = 0; i < got->samples.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got->samples[i]) - expected->samples[i]));
    loudest = std::max(loudest, std::abs(static_cast<double>(expected->samples[i])));
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_GT(loudest, 0.1);
  EXPECT_LE(worst, 0.5 / 32768 + GetParam().bound) << "worst difference of " << file;
}

// No file is read by halves.
TEST_P(Formats, AreRefusedWhenCutOff) {
  const std::string file = file_of(GetParam().file);
  for (size_t part = 0; part < 100; ++part) {
    const size_t size = file.size() * part / 100;
    const auto recording = read(file.substr(0, size));
    ASSERT_FALSE(recording) << size << " of " << file.size() << " bytes gave " << recording->seconds() << " s";
    EXPECT_THAT(recording.error().message, HasSubstr("'me'"));
  }
  expect_fault(file.substr(0, file.size() - 1), Code::kDataLoss, "cut off");
}

// With a sink that can be warned: the beginning of the whole, and no more than that; nothing is an error still.
TEST_P(Formats, AreReadAsFarAsWhole) {
  constexpr size_t kLastFrames = 2400;  // of decoders that look ahead, and padding that is known to the whole alone
  const std::string file = file_of(GetParam().file);
  const ReadPart whole = read_part(file);
  ASSERT_TRUE(whole.status) << whole.status.error().message;
  EXPECT_TRUE(whole.warnings.empty());
  size_t parts = 0;
  for (size_t cut = 0; cut < 100; ++cut) {
    const ReadPart part = read_part(file.substr(0, file.size() * cut / 100));
    if (!part.status) {
      EXPECT_TRUE(part.warnings.empty());
      EXPECT_THAT(part.status.error().message, HasSubstr("'me'"));
      continue;
    }
    ++parts;
    ASSERT_EQ(part.warnings.size(), 1u);
    EXPECT_THAT(part.warnings[0], AllOf(HasSubstr("'me' is cut off"), HasSubstr("s were read")));
    ASSERT_GT(part.samples.size(), 0u);
    ASSERT_LE(part.samples.size(), whole.samples.size() + kLastFrames);
    const size_t sure = std::min(part.samples.size(), whole.samples.size());
    for (size_t i = 0; i + kLastFrames < sure; ++i) ASSERT_EQ(part.samples[i], whole.samples[i]) << cut << " " << i;
  }
  const bool has_parts = GetParam().least_parts > 0;
  EXPECT_GE(parts, GetParam().least_parts);
  EXPECT_EQ(parts > 0, has_parts);
  const ReadPart last = read_part(file.substr(0, file.size() - 1));
  EXPECT_EQ(last.status.has_value(), has_parts);
}

// Ten seconds, in several pages.
std::string opus_of_pages() {
  std::vector<std::byte> bytes;
  auto encoder = AudioEncoder::create(AudioFormat::kOpus, {.rate_hz = 24000}, memory_sink(bytes));
  EXPECT_TRUE(encoder && (*encoder)->write(voice_like(10 * 24000, 24000)) && (*encoder)->finish());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Recording, PartsOfOpusEndWithAPage) {
  const std::string file = opus_of_pages();
  const ReadPart whole = read_part(file);
  ASSERT_TRUE(whole.status) << whole.status.error().message;
  ASSERT_GE(whole.samples.size(), 10u * 48000);
  for (const size_t percent : {60, 90}) {
    const ReadPart part = read_part(file.substr(0, file.size() * percent / 100));
    ASSERT_TRUE(part.status) << part.status.error().message;
    EXPECT_THAT(part.warnings, testing::ElementsAre(HasSubstr("'me' is cut off")));
    EXPECT_LT(part.samples.size(), whole.samples.size());
    EXPECT_GT(part.samples.size() + 3 * 48000, whole.samples.size() * percent / 100);
    EXPECT_TRUE(std::equal(part.samples.begin(), part.samples.end() - 2400, whole.samples.begin()));
  }
}

// Those whose frames are short.
TEST(Recording, PartsOfFlacAndMp3AreNearlyAll) {
  for (const char* const name : {"flac_24000.flac", "mp3_24000.mp3", "flac_24000.wav"}) {
    const std::string file = file_of(name);
    const size_t whole = read_part(file).samples.size();
    for (const size_t percent : {90, 97}) {  // a FLAC file has padding in front
      const ReadPart part = read_part(file.substr(0, file.size() * percent / 100));
      ASSERT_TRUE(part.status) << name << ": " << part.status.error().message;
      EXPECT_GT(part.samples.size() + 8192, whole * percent / 100) << name;
    }
  }
}

TEST(Recording, DamagedMiddleEndsThePart) {
  for (std::string file : {file_of("flac_24000.flac"), opus_of_pages()}) {
    const size_t whole = read_part(file).samples.size();
    for (size_t i = 0; i < 40; ++i) file[file.size() * 9 / 10 - i] = '\x55';
    const ReadPart part = read_part(file);
    ASSERT_TRUE(part.status) << part.status.error().message;
    EXPECT_GT(part.samples.size(), whole / 4);
    EXPECT_LT(part.samples.size(), whole);
    EXPECT_THAT(part.warnings, testing::ElementsAre(HasSubstr("damaged")));
  }
  const std::string ogg = file_of("vorbis_22050.ogg");
  EXPECT_EQ(read_part(ogg + ogg).status.error().code, Code::kUnsupported);  // no damage
}

TEST(Recording, ReadsEveryFormatThatWeWrite) {
  std::vector<float> sound(36000);
  for (size_t i = 0; i < sound.size(); ++i) sound[i] = 0.3f * std::sin(0.05f * static_cast<float>(i));
  for (const AudioFormat format : {AudioFormat::kWav, AudioFormat::kFlac, AudioFormat::kOpus, AudioFormat::kMp3}) {
    for (const bool streamed : {false, true}) {
      const TempFolder folder;
      const std::string path = folder.file("no_ending");
      auto file = ScopedFile::create(path);
      ASSERT_TRUE(file);
      ByteSink sink = file_sink(*file);
      if (streamed) sink.patch = nullptr;
      auto encoder = AudioEncoder::create(format, {.rate_hz = 24000}, std::move(sink));
      ASSERT_TRUE(encoder && (*encoder)->write(sound) && (*encoder)->finish() && file->commit());
      const auto recording = read_recording(path);
      ASSERT_TRUE(recording) << audio_format_name(format) << ": " << recording.error().message;
      const size_t times = format == AudioFormat::kOpus ? 2 : 1;
      EXPECT_EQ(recording->rate_hz, 24000 * static_cast<int>(times));
      const size_t padding = format == AudioFormat::kMp3 && streamed ? 3000 : 0;  // no tag says where the sound is
      EXPECT_GE(recording->samples.size(), sound.size() * times);
      EXPECT_LE(recording->samples.size(), sound.size() * times + padding) << audio_format_name(format);
      EXPECT_NEAR(*std::max_element(recording->samples.begin(), recording->samples.end()), 0.3, 0.02);
    }
  }
}

TEST(Recording, SkipsTagsAndRubbishAroundMp3) {
  const std::string file = file_of("mp3_24000.mp3");
  const auto plain = read(file);
  ASSERT_TRUE(plain);
  for (const std::string& around : {id3_tag(300) + file, id3_tag(300, 0x10) + id3_tag(5) + file,
                                    std::string(500, '\0') + file, file + "TAG" + std::string(125, 'x')}) {
    const auto recording = read(around);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->samples, plain->samples);
  }
  const auto tagged = read(id3_tag(20) + file_of("flac_24000.flac"));
  EXPECT_TRUE(tagged) << tagged.error().message;
}

// A stream without a tag whose later frames have half the bits: estimates of its length, as libsndfile's, fall short.
TEST(Recording, ReadsMp3OfUnevenBitRateToItsEnd) {
  std::vector<std::byte> bytes;
  ByteSink sink = memory_sink(bytes);
  sink.patch = nullptr;
  auto encoder = AudioEncoder::create(AudioFormat::kMp3, {.rate_hz = 24000}, std::move(sink));
  ASSERT_TRUE(encoder && (*encoder)->write(std::vector<float>(36000, 0.1f)) && (*encoder)->finish());
  std::string file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t wide_frame = 288, narrow_frame = 144;  // 96 and 48 kbit/s at 24 kHz
  size_t frames = file.size() / wide_frame;
  ASSERT_EQ(file.size() % wide_frame, 0u);

  const std::string tagged = file_of("mp3_24000.mp3");
  const size_t begin = tagged.find("\xff\xf3"), tag_frame = 192;
  ASSERT_NE(begin, std::string::npos);
  const std::string narrow = tagged.substr(begin + tag_frame);
  ASSERT_EQ(narrow.size() % narrow_frame, 0u);
  for (int i = 0; i < 20; ++i) file += narrow;
  frames += 20 * narrow.size() / narrow_frame;
  const auto recording = read(file);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->samples.size(), frames * 576);
}

TEST(Recording, RefusesFilesWithoutAudio) {
  expect_fault("", Code::kDataLoss, "empty");
  expect_fault("just some text, and more of it", Code::kUnsupported, "WAV, FLAC, MP3");
  expect_fault(std::string(100000, '\xff'), Code::kUnsupported, "WAV, FLAC, MP3");
  expect_fault(std::string("\0\0\0\x18"
                           "ftypM4A ",
                           12) +
                   std::string(500, '\1'),
               Code::kDataLoss, "cut off");
  expect_fault(id3_tag(5000).substr(0, 100), Code::kUnsupported, "WAV, FLAC, MP3");
  expect_fault("RIFF....AVI ", Code::kDataLoss, "not a WAV");
  expect_fault("fLaC" + std::string(200, '\1'), Code::kDataLoss, "damaged");
  expect_fault("OggS", Code::kDataLoss, "cut off");
  expect_fault("OggS" + std::string(200, '\0'), Code::kDataLoss, "another checksum");
  const TempFolder folder;
  EXPECT_EQ(read_recording(folder.file("nothing.wav")).error().code, Code::kNotFound);
  EXPECT_EQ(read_recording(folder.path()).error().code, Code::kIo);
}

TEST(Recording, RefusesDamage) {
  for (const char* name : {"flac_24000.flac", "vorbis_22050.ogg", "opus_48000.opus"}) {
    std::string file = file_of(name);
    for (size_t i = 0; i < 40; ++i) file[file.size() * 9 / 10 - i] = '\x55';
    expect_fault(file, Code::kDataLoss, "damaged");
  }
  const std::string ogg = file_of("vorbis_22050.ogg");
  expect_fault(ogg + ogg, Code::kUnsupported, "several recordings in a row");
  const std::string slow = file_of("mp3_24000.mp3"), fast = file_of("mp3_stereo_44100.mp3");
  const auto joined = read(slow + fast);
  EXPECT_FALSE(joined && joined->rate_hz == 24000 && joined->samples.size() > 12000);
}

// One of other channels, behind something that is no page.
TEST(Recording, RefusesASecondRecordingBehindSomethingElse) {
  expect_fault(file_of("opus_stereo_48000.ogg") + "." + renumbered(file_of("opus_48000.opus"), 7), Code::kDataLoss,
               "between two Ogg pages");
  expect_fault(file_of("vorbis_stereo_48000.ogg") + "." + renumbered(file_of("vorbis_22050.ogg"), 7), Code::kDataLoss,
               "between two Ogg pages");
  EXPECT_TRUE(read(file_of("opus_stereo_48000.ogg") + "TAG and more"));
}

TEST(Recording, KeepsToItsLimits) {
  for (const char* name : {"flac_24000.flac", "mp3_24000.mp3", "opus_48000.opus", "flac_24000.wav"}) {
    const std::string file = file_of(name);
    expect_fault(file, Code::kLimitExceeded, "s", {.max_seconds = 0.25});
    expect_fault(file, Code::kLimitExceeded, "96000 to 192000 Hz", {.min_rate_hz = 96000, .max_rate_hz = 192000});
  }
  expect_fault(file_of("vorbis_stereo_48000.ogg"), Code::kLimitExceeded, "2 channels; 1 to 1", {.max_channels = 1});
}

}  // namespace
}  // namespace syrinx
