#include "audio/encode/encoder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "audio/pcm.h"
#include "audio/wav.h"
#include "base/signals.h"
#include "tests/audio/sound_tools.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

using Bytes = std::vector<std::byte>;
constexpr AudioFormat kAll[] = {AudioFormat::kWav, AudioFormat::kPcm, AudioFormat::kFlac, AudioFormat::kOpus,
                                AudioFormat::kMp3};

// Encodes in pieces whose sizes run through `sizes`; `seekable`: the sink can patch.
Bytes encode(AudioFormat format, int rate_hz, std::span<const float> sound, std::vector<size_t> sizes, bool seekable) {
  Bytes memory;
  ByteSink sink = memory_sink(memory);
  if (!seekable) sink.patch = nullptr;
  auto encoder = AudioEncoder::create(format, {.rate_hz = rate_hz}, std::move(sink));
  EXPECT_TRUE(encoder) << encoder.error().message;
  if (!encoder) return {};
  for (size_t piece = 0; !sound.empty(); ++piece) {
    const size_t size = std::min(sizes[piece % sizes.size()], sound.size());
    EXPECT_TRUE((*encoder)->write(sound.first(size)));
    sound = sound.subspan(size);
  }
  const Status status = (*encoder)->finish();
  EXPECT_TRUE(status) << status.error().message;
  return memory;
}

Decoded decode_bytes(const Bytes& bytes, const char* name) {
  const TempFolder folder;
  write_text(folder.file(name), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return decode(folder.file(name));
}

class EncoderTest : public testing::TestWithParam<std::tuple<AudioFormat, int, bool>> {
 protected:
  AudioFormat format() const { return std::get<0>(GetParam()); }
  int rate_hz() const { return std::get<1>(GetParam()); }
  bool seekable() const { return std::get<2>(GetParam()); }
  bool refused() const { return format() == AudioFormat::kOpus && rate_hz() == 22050; }
};
INSTANTIATE_TEST_SUITE_P(All, EncoderTest,
                         testing::Combine(testing::ValuesIn(kAll), testing::Values(22050, 24000), testing::Bool()),
                         [](const auto& info) {
                           return std::string(audio_format_name(std::get<0>(info.param))) +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<2>(info.param) ? "Seekable" : "Streamed");
                         });

TEST_P(EncoderTest, OtherDecodersReadIt) {
  if (refused()) {
    const auto encoder = AudioEncoder::create(format(), {.rate_hz = rate_hz()}, ByteSink());
    ASSERT_FALSE(encoder);
    EXPECT_EQ(encoder.error().code, Code::kUnsupported);
    EXPECT_NE(encoder.error().message.find("22050 Hz"), std::string::npos);
    return;
  }
  const auto sound = voice_like(static_cast<size_t>(rate_hz()) * 2 + 777, rate_hz());
  const Bytes bytes = encode(format(), rate_hz(), sound, {2400}, seekable());
  if (format() == AudioFormat::kPcm) {
    std::vector<int16_t> expected(sound.size());
    PcmQuantizer().convert(sound, expected);
    ASSERT_EQ(bytes.size(), expected.size() * 2);
    EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
    return;
  }
  const Decoded got = decode_bytes(bytes, "a.bin");
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.rate_hz, rate_hz());
  EXPECT_EQ(got.channels, 1);
  const bool lossless = format() == AudioFormat::kWav || format() == AudioFormat::kFlac;
  if (lossless) {
    ASSERT_EQ(got.samples.size(), sound.size());
    for (size_t i = 0; i < sound.size(); ++i) ASSERT_NEAR(got.samples[i], sound[i], 0.5001f / 32768) << i;
    if (seekable()) {
      EXPECT_EQ(got.announced_frames, static_cast<int64_t>(sound.size()));
    }
    return;
  }
  size_t shift = 0;
  if (format() == AudioFormat::kMp3 && !seekable()) {  // without its tag the decoder cannot take the delay away
    for (size_t candidate = 0; candidate < 2500; ++candidate) {
      if (snr_db(sound, got.samples, candidate) > snr_db(sound, got.samples, shift)) shift = candidate;
    }
  } else {
    EXPECT_EQ(got.samples.size(), sound.size());
  }
  const double snr = snr_db(sound, got.samples, shift);
  RecordProperty("snr_db", std::to_string(snr));
  EXPECT_GE(snr, format() == AudioFormat::kMp3 ? 20.0 : 12.0) << "shift " << shift;
}

TEST_P(EncoderTest, PiecesMakeTheSameStream) {
  if (refused()) return;
  const auto sound = voice_like(30011, rate_hz());
  const Bytes whole = encode(format(), rate_hz(), sound, {sound.size()}, seekable());
  const std::vector<std::vector<size_t>> cuts = {{1}, {7, 600, 1, 4097}, {1920}};
  for (const auto& sizes : cuts) {
    const Bytes pieces = encode(format(), rate_hz(), sound, sizes, seekable());
    if (format() != AudioFormat::kOpus) {
      EXPECT_EQ(pieces, whole);
    } else {  // pages end with each write; the packets within are the same
      EXPECT_EQ(decode_bytes(pieces, "a.opus").samples, decode_bytes(whole, "b.opus").samples);
    }
  }
}

TEST_P(EncoderTest, OneHeaderAndTrueSizesOnlyWhereTheyCanBeWritten) {
  if (refused()) return;
  const auto sound = voice_like(10000, rate_hz());
  const Bytes bytes = encode(format(), rate_hz(), sound, {1000}, seekable());
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string magic = format() == AudioFormat::kWav    ? "RIFF"
                            : format() == AudioFormat::kFlac ? "fLaC"
                            : format() == AudioFormat::kOpus ? "OpusHead"
                                                             : "";
  if (!magic.empty()) {
    EXPECT_NE(text.find(magic), std::string::npos);
    EXPECT_EQ(text.find(magic, text.find(magic) + 1), std::string::npos);
  }
  if (format() == AudioFormat::kWav) {
    const auto header = wav_header(rate_hz(), seekable() ? std::optional<uint64_t>(20000) : std::nullopt);
    EXPECT_EQ(std::memcmp(bytes.data(), header.data(), header.size()), 0);
  }
  if (format() == AudioFormat::kMp3) {
    EXPECT_EQ(text.find("Info") != std::string::npos, seekable());
  }
}

// The sink fails at every place a call may reach: the error comes back, again and again, and nothing else is written.
TEST_P(EncoderTest, FailingSink) {
  if (refused()) return;
  const auto sound = voice_like(12000, rate_hz());
  const size_t full = encode(format(), rate_hz(), sound, {3000}, seekable()).size();
  for (size_t good : {size_t{0}, size_t{1}, size_t{44}, size_t{60}, full / 3, full - 1}) {
    FailingSink failing(good, seekable());
    auto encoder = AudioEncoder::create(format(), {.rate_hz = rate_hz()}, failing.sink);
    ASSERT_TRUE(encoder);
    Status status;
    for (size_t at = 0; at < sound.size() && status; at += 3000) {
      status = (*encoder)->write(std::span(sound).subspan(at, 3000));
    }
    if (status) status = (*encoder)->finish();
    ASSERT_FALSE(status) << good;
    EXPECT_EQ(status.error().code, Code::kIo) << status.error().message;
    EXPECT_EQ((*encoder)->write(sound).error().message, status.error().message);
    EXPECT_EQ((*encoder)->finish().error().message, status.error().message);
    encoder->reset();
    EXPECT_EQ(failing.calls_after, 0) << good;
  }
}

TEST_P(EncoderTest, DroppedWithoutFinish) {
  if (refused()) return;
  Bytes memory;
  ByteSink sink = memory_sink(memory);
  if (!seekable()) sink.patch = nullptr;
  auto encoder = AudioEncoder::create(format(), {.rate_hz = rate_hz()}, sink);
  ASSERT_TRUE(encoder && (*encoder)->write(voice_like(5000, rate_hz())));
  const size_t before = memory.size();
  encoder->reset();
  EXPECT_EQ(memory.size(), before);
}

TEST_P(EncoderTest, EmptySound) {
  if (refused()) return;
  const Bytes bytes = encode(format(), rate_hz(), {}, {1}, seekable());
  if (format() == AudioFormat::kPcm || format() == AudioFormat::kMp3) return;  // nothing to head
  const Decoded got = decode_bytes(bytes, "a.bin");
  EXPECT_EQ(got.error, "");
  EXPECT_TRUE(got.samples.empty());
}

TEST_P(EncoderTest, WildSamplesAreClippedAndCounted) {
  if (refused()) return;
  std::vector<float> sound(5000, 0.1f);
  sound[10] = 3.0f;
  sound[11] = -INFINITY;
  sound[12] = NAN;
  Bytes memory;
  auto encoder = AudioEncoder::create(format(), {.rate_hz = rate_hz()}, memory_sink(memory));
  ASSERT_TRUE(encoder && (*encoder)->write(sound) && (*encoder)->finish());
  EXPECT_EQ((*encoder)->clipped_samples(), 3u);
  EXPECT_EQ((*encoder)->samples(), sound.size());
  if (format() == AudioFormat::kPcm) return;
  for (float sample : decode_bytes(memory, "a.bin").samples) ASSERT_TRUE(std::isfinite(sample));
}

TEST(Encoder, FramesLeaveAsTheyAreMade) {
  for (AudioFormat format : kAll) {
    Bytes memory;
    ByteSink sink = memory_sink(memory);
    sink.patch = nullptr;
    auto encoder = AudioEncoder::create(format, {}, std::move(sink));
    ASSERT_TRUE(encoder);
    const auto sound = voice_like(24000, 24000);
    size_t last = 0;
    for (size_t at = 0; at < sound.size(); at += 4800) {  // 200 ms: more than any format's own delay
      ASSERT_TRUE((*encoder)->write(std::span(sound).subspan(at, 4800)));
      EXPECT_GT(memory.size(), last) << audio_format_name(format) << " at " << at;
      last = memory.size();
    }
  }
}

TEST(Encoder, MisuseAndRates) {
  Bytes memory;
  auto encoder = AudioEncoder::create(AudioFormat::kWav, {}, memory_sink(memory));
  ASSERT_TRUE(encoder && (*encoder)->finish());
  EXPECT_EQ((*encoder)->finish().error().code, Code::kInternal);
  EXPECT_EQ((*encoder)->write(std::vector<float>(3)).error().code, Code::kInternal);
  for (int rate : {0, -1, 7999, 192001}) {
    EXPECT_EQ(AudioEncoder::create(AudioFormat::kWav, {.rate_hz = rate}, memory_sink(memory)).error().code,
              Code::kUnsupported);
  }
  EXPECT_EQ(AudioEncoder::create(AudioFormat::kMp3, {.rate_hz = 96000}, memory_sink(memory)).error().code,
            Code::kUnsupported);
}

TEST(Encoder, DitherIsAnOption) {
  const std::vector<float> sound(3000, 0.3f / 32768);
  Bytes plain, dithered, again, lossless;
  for (auto [memory, seed] : {std::pair<Bytes*, int>{&plain, -1}, {&dithered, 4}, {&again, 4}}) {
    EncoderOptions options;
    if (seed >= 0) options.dither_seed = static_cast<uint64_t>(seed);
    auto encoder = AudioEncoder::create(AudioFormat::kPcm, options, memory_sink(*memory));
    ASSERT_TRUE(encoder && (*encoder)->write(sound) && (*encoder)->finish());
  }
  EXPECT_NE(plain, dithered);
  EXPECT_EQ(dithered, again);
  EncoderOptions options;
  options.dither_seed = 4;
  auto encoder = AudioEncoder::create(AudioFormat::kFlac, options, memory_sink(lossless));
  ASSERT_TRUE(encoder && (*encoder)->write(sound) && (*encoder)->finish());
  const Decoded got = decode_bytes(lossless, "a.flac");
  std::vector<int16_t> values(sound.size());
  PcmQuantizer().convert(got.samples, values);
  EXPECT_EQ(std::memcmp(values.data(), dithered.data(), dithered.size()), 0);
}

TEST(Encoder, NamesAndEndings) {
  for (AudioFormat format : kAll) {
    EXPECT_EQ(*parse_audio_format(audio_format_name(format)), format);
    EXPECT_EQ(audio_format_of(std::string("dir.x/a.") + audio_format_name(format)), format);
  }
  EXPECT_EQ(parse_audio_format("aiff").error().code, Code::kInvalidArgument);
  EXPECT_EQ(audio_format_of("A.WAV"), AudioFormat::kWav);
  EXPECT_EQ(audio_format_of("a.wave"), AudioFormat::kWav);
  EXPECT_EQ(audio_format_of("a.ogg"), AudioFormat::kOpus);
  EXPECT_EQ(audio_format_of("a.raw"), AudioFormat::kPcm);
  EXPECT_FALSE(audio_format_of("wav"));
  EXPECT_FALSE(audio_format_of("a.wav/b"));
  EXPECT_FALSE(audio_format_of("a.txt"));
  EXPECT_FALSE(audio_format_of(""));
}

TEST(ByteSink, ScopedFileGetsTrueSizes) {
  const TempFolder folder;
  const auto sound = voice_like(5000, 24000);
  for (AudioFormat format : kAll) {
    const std::string path = folder.file(audio_format_name(format));
    auto file = ScopedFile::create(path);
    ASSERT_TRUE(file);
    auto encoder = AudioEncoder::create(format, {}, file_sink(*file));
    ASSERT_TRUE(encoder && (*encoder)->write(sound) && (*encoder)->finish() && file->commit());
    const Bytes expected = encode(format, 24000, sound, {sound.size()}, true);
    EXPECT_EQ(read_text(path), std::string(reinterpret_cast<const char*>(expected.data()), expected.size()));
  }
}

TEST(ByteSink, FullDiskAndClosedPipe) {
  install_signal_handlers();
  const auto sound = voice_like(48000, 24000);
  for (AudioFormat format : kAll) {
    auto full = ScopedFile::create("/dev/full");
    ASSERT_TRUE(full);
    auto encoder = AudioEncoder::create(format, {}, file_sink(*full));
    ASSERT_TRUE(encoder);
    Status status = (*encoder)->write(sound);
    if (status) status = (*encoder)->finish();
    ASSERT_FALSE(status) << audio_format_name(format);
    EXPECT_NE(status.error().message.find("make room"), std::string::npos) << status.error().message;

    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    auto piped = AudioEncoder::create(format, {}, descriptor_sink(ends[1], "standard output"));
    ASSERT_TRUE(piped);
    status = (*piped)->write(sound);
    if (status) status = (*piped)->finish();
    close(ends[1]);
    ASSERT_FALSE(status) << audio_format_name(format);
    EXPECT_EQ(status.error().message, "cannot write to standard output: the reader has gone away");
  }
}

TEST(ByteSink, DescriptorTakesEverything) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);  // a full pipe then says EAGAIN
  std::string sent(300000, 'a'), got;
  std::thread reader([&] {
    char block[5000];
    for (ssize_t n; (n = read(ends[0], block, sizeof block)) > 0;) got.append(block, static_cast<size_t>(n));
  });
  const ByteSink sink = descriptor_sink(ends[1], "pipe");
  EXPECT_TRUE(sink.append(std::as_bytes(std::span(sent))));
  EXPECT_FALSE(sink.patch);
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(sink.append(std::as_bytes(std::span(sent))).error().code, Code::kIo);  // closed
}

TEST(ByteSink, MemoryPatchesStayInside) {
  Bytes memory(4);
  const ByteSink sink = memory_sink(memory);
  const Bytes two(2, std::byte{7});
  EXPECT_TRUE(sink.patch(2, two));
  EXPECT_FALSE(sink.patch(3, two));
  EXPECT_FALSE(sink.patch(~uint64_t{0}, two));
  EXPECT_EQ(memory[3], std::byte{7});
}

}  // namespace
}  // namespace syrinx
