#include "audio/wav.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "../base/temp_folder.h"
#include "audio/decode/pcm_stream.h"
#include "base/mapped_file.h"
#include "sound_tools.h"

namespace syrinx {
namespace {

std::string number(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string chunk(const std::string& name, const std::string& body) {
  return name + number(static_cast<uint32_t>(body.size()), 4) + body + (body.size() % 2 ? std::string(1, '\0') : "");
}
std::string format(uint32_t kind, uint32_t channels, uint32_t rate, uint32_t bits) {
  const uint32_t frame = channels * bits / 8;
  return number(kind, 2) + number(channels, 2) + number(rate, 4) + number(rate * frame, 4) + number(frame, 2) +
         number(bits, 2);
}
std::string riff(const std::string& chunks) {
  return "RIFF" + number(static_cast<uint32_t>(chunks.size() + 4), 4) + "WAVE" + chunks;
}
Result<WavSound> read(const std::string& file, const SoundLimits& limits = {}) {
  return read_wav(std::as_bytes(std::span(file)), "x.wav", limits);
}
void expect_error(const std::string& file, Code code, const std::string& part, const SoundLimits& limits = {}) {
  const auto sound = read(file, limits);
  ASSERT_FALSE(sound) << part;
  EXPECT_EQ(sound.error().code, code) << sound.error().message;
  EXPECT_NE(sound.error().message.find(part), std::string::npos) << sound.error().message;
  EXPECT_NE(sound.error().message.find("'x.wav'"), std::string::npos) << sound.error().message;
}

// Files written by libsndfile in every kind that we read.
class WavKindTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Kinds, WavKindTest,
                         testing::Values(SF_FORMAT_WAV | SF_FORMAT_PCM_U8, SF_FORMAT_WAV | SF_FORMAT_PCM_16,
                                         SF_FORMAT_WAV | SF_FORMAT_PCM_24, SF_FORMAT_WAV | SF_FORMAT_PCM_32,
                                         SF_FORMAT_WAV | SF_FORMAT_FLOAT, SF_FORMAT_WAV | SF_FORMAT_ALAW,
                                         SF_FORMAT_WAV | SF_FORMAT_ULAW, SF_FORMAT_WAVEX | SF_FORMAT_ULAW,
                                         SF_FORMAT_WAVEX | SF_FORMAT_ALAW, SF_FORMAT_WAVEX | SF_FORMAT_PCM_16,
                                         SF_FORMAT_WAVEX | SF_FORMAT_PCM_24, SF_FORMAT_WAVEX | SF_FORMAT_FLOAT));

TEST_P(WavKindTest, ReadsFilesOfLibsndfile) {
  for (int channels : {1, 2}) {
    for (int rate : {22050, 24000, 48000}) {
      const TempFolder folder;
      const auto sound = voice_like(static_cast<size_t>(2001 * channels), rate);
      SF_INFO info{};
      info.samplerate = rate;
      info.channels = channels;
      info.format = GetParam();
      SNDFILE* const out = sf_open(folder.file("a.wav").c_str(), SFM_WRITE, &info);
      ASSERT_NE(out, nullptr);
      sf_set_string(out, SF_STR_TITLE, "odd");  // a chunk between and after
      sf_write_float(out, sound.data(), static_cast<sf_count_t>(sound.size()));
      sf_close(out);
      const Decoded expected = decode(folder.file("a.wav"));
      const auto mapped = MappedFile::open(folder.file("a.wav"));
      ASSERT_TRUE(mapped);
      const auto got = read_wav(mapped->bytes(), "a.wav");
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(got->rate_hz, rate);
      EXPECT_EQ(got->channels, channels);
      EXPECT_EQ(got->frames(), 2001u);
      EXPECT_NEAR(got->seconds(), 2001.0 / rate, 1e-9);
      EXPECT_EQ(got->samples, expected.samples);
    }
  }
}

// All 256 codes of both laws, against libsndfile's tables.
TEST(Wav, ReadsEveryCodeOfG711) {
  for (const uint32_t kind : {6u, 7u}) {
    std::string codes;
    for (int code = 0; code < 256; ++code) codes += static_cast<char>(code);
    const std::string file = riff(chunk("fmt ", format(kind, 1, 8000, 8)) + chunk("data", codes));
    const TempFolder folder;
    write_text(folder.file("a.wav"), file);
    const auto sound = read(file);
    ASSERT_TRUE(sound) << sound.error().message;
    ASSERT_EQ(sound->samples.size(), 256u);
    EXPECT_EQ(sound->samples, decode(folder.file("a.wav")).samples);
    expect_error(riff(chunk("fmt ", format(kind, 1, 8000, 16)) + chunk("data", codes)), Code::kUnsupported, "16 bits");
  }
}

const std::string kMono16 = chunk("fmt ", format(1, 1, 24000, 16));

TEST(Wav, SkipsOddChunksAndTrailingBytes) {
  const auto sound = read(riff(chunk("LIST", "abc") + kMono16 + chunk("junk", "x") + chunk("data", number(0x4000, 2)) +
                               "trailing rubbish"));
  ASSERT_TRUE(sound) << sound.error().message;
  EXPECT_EQ(sound->samples, std::vector<float>{0.5f});
}

TEST(Wav, OddLastChunkMayLackItsPad) {
  std::string file = riff(chunk("fmt ", format(1, 1, 8000, 8)) + "data" + number(3, 4));
  file += "\x80\xff";
  file += '\0';
  const auto sound = read(file);
  ASSERT_TRUE(sound) << sound.error().message;
  EXPECT_EQ(sound->samples, (std::vector<float>{0.0f, 127.0f / 128, -1.0f}));
}

TEST(Wav, UnknownSizeReachesToTheEnd) {
  for (uint32_t size : {0xFFFFFFFFu, 0x7FFFF000u, 0x80000000u}) {
    const auto sound =
        read(riff(kMono16 + "data" + number(size, 4) + number(0xC0004000, 4) + "x"));  // and half a frame
    ASSERT_TRUE(sound) << sound.error().message;
    EXPECT_EQ(sound->samples, (std::vector<float>{0.5f, -0.5f}));
  }
}

// A writer that never came back to its header leaves 0 there.
TEST(Wav, ZeroSizeReachesToTheEnd) {
  const std::string sound = number(0xC0004000, 4);
  const auto written = [&](uint32_t all, const std::string& rest) {
    return riff(kMono16 + "data" + number(0, 4) + rest).replace(4, 4, number(all, 4));
  };
  for (const uint32_t all : {0u, 36u, 0xFFFFFFFFu, 0x7FFFF024u, 40u}) {
    const auto got = read(written(all, sound));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->samples, (std::vector<float>{0.5f, -0.5f})) << all;
  }
  const std::string tags = chunk("LIST", "abcd");
  EXPECT_TRUE(read(written(36 + 12, tags))->samples.empty());  // no sound, and a chunk
  EXPECT_FALSE(read(written(0, tags))->samples.empty());
}

TEST(Wav, OwnHeader) {
  const auto known = wav_header(24000, 4);
  std::string file(reinterpret_cast<const char*>(known.data()), known.size());
  EXPECT_EQ(file, riff(kMono16 + "data" + number(4, 4)).replace(4, 4, number(40, 4)));
  file += number(0xC0004000, 4);
  EXPECT_EQ(read(file)->samples, (std::vector<float>{0.5f, -0.5f}));
  for (const auto size : {std::optional<uint64_t>(), std::optional<uint64_t>(uint64_t{1} << 32)}) {
    const auto header = wav_header(24000, size);
    const std::string text(reinterpret_cast<const char*>(header.data()), header.size());
    EXPECT_EQ(text.substr(4, 4), number(0xFFFFFFFF, 4));
    EXPECT_EQ(text.substr(40, 4), number(0xFFFFFFFF, 4));
  }
}

TEST(Wav, HostileFilesGetASentence) {
  const std::string data = chunk("data", std::string(64, '\1'));
  expect_error("", Code::kDataLoss, "not a WAV");
  expect_error("RIFF....WAV", Code::kDataLoss, "not a WAV");
  expect_error("RIFX" + riff(kMono16 + data).substr(4), Code::kDataLoss, "not a WAV");
  expect_error(riff(""), Code::kDataLoss, "no audio");
  expect_error(riff(kMono16), Code::kDataLoss, "no audio");
  expect_error(riff(data), Code::kDataLoss, "before their format");
  expect_error(riff(chunk("fmt ", "short") + data), Code::kDataLoss, "5 bytes, needs 16");
  expect_error(riff(kMono16 + "data" + number(100, 4) + "abcd"), Code::kDataLoss,
               "announces 100 bytes of sound and holds 4");
  expect_error(riff("LIST" + number(0xFFFFFFFF, 4)), Code::kDataLoss, "cut off");
  expect_error(riff(chunk("fmt ", format(2, 1, 24000, 4)) + data), Code::kUnsupported, "kind 2");
  expect_error(riff(chunk("fmt ", format(1, 1, 24000, 12)) + data), Code::kUnsupported, "12 bits");
  expect_error(riff(chunk("fmt ", format(3, 1, 24000, 64)) + data), Code::kUnsupported, "64 bits");
  expect_error(riff(chunk("fmt ", format(1, 0, 24000, 16)) + data), Code::kLimitExceeded, "0 channels");
  expect_error(riff(chunk("fmt ", format(1, 9, 24000, 16)) + data), Code::kLimitExceeded, "1 to 8");
  expect_error(riff(chunk("fmt ", format(1, 1, 0, 16)) + data), Code::kLimitExceeded, "0 Hz");
  expect_error(riff(chunk("fmt ", format(1, 1, 4000000000u, 16)) + data), Code::kLimitExceeded, "4000000000 Hz");
  std::string lying = format(1, 2, 24000, 16);
  lying[12] = 2;
  expect_error(riff(chunk("fmt ", lying) + data), Code::kDataLoss, "2 bytes a frame");
  expect_error(riff(chunk("fmt ", format(0xFFFE, 1, 24000, 16)) + data), Code::kDataLoss, "extensible");
  expect_error(riff(chunk("fmt ", format(0xFFFE, 1, 24000, 16) + std::string(24, 'z')) + data), Code::kUnsupported,
               "unknown extensible");
  expect_error(riff(chunk("fmt ", format(3, 1, 24000, 32)) + chunk("data", number(0x7FC00000, 4))), Code::kDataLoss,
               "not a number");
  SoundLimits short_only;
  short_only.max_seconds = 0.001;
  expect_error(riff(kMono16 + data), Code::kLimitExceeded, "at most", short_only);
  std::string many;
  for (int i = 0; i < 1001; ++i) many += chunk("junk", "");
  expect_error(riff(many + kMono16 + data), Code::kLimitExceeded, "1000 chunks");
}

TEST(Wav, EveryPrefixIsAnAnswer) {
  const std::string file = riff(chunk("LIST", "abc") + kMono16 + chunk("data", std::string(20, '\1')));
  for (size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(read(file.substr(0, size))) << size;
  EXPECT_TRUE(read(file));
}

// Reads `bytes` through a pipe, in pieces of any size.
std::vector<float> through_pipe(std::optional<PcmFormat> format, const std::string& bytes, size_t piece, int& rate_hz,
                                Status& status) {
  const std::string name = "standard input";
  const SoundLimits limits;
  std::vector<float> got;
  const SoundSink sink{.begin =
                           [&](int rate, std::optional<uint64_t>) {
                             rate_hz = rate;
                             return Status();
                           },
                       .add =
                           [&](std::span<const float> block) {
                             got.insert(got.end(), block.begin(), block.end());
                             return Status();
                           }};
  PcmStream stream(format, name, limits, sink);
  for (size_t at = 0; at < bytes.size() && status; at += piece)
    status = stream.push(std::as_bytes(std::span(bytes)).subspan(at, std::min(piece, bytes.size() - at)));
  if (status) status = stream.finish();
  return got;
}

TEST(PcmStream, GivesTheSamplesOfAWavInAnyPieces) {
  std::string samples;
  for (int i = 0; i < 1000; ++i) samples += std::string{static_cast<char>(i), static_cast<char>(i / 256)};
  for (const auto announced : {std::optional<uint64_t>(samples.size()), std::optional<uint64_t>()}) {
    const auto head = wav_header(22050, announced);
    std::string file(reinterpret_cast<const char*>(head.data()), head.size());
    file += samples;
    const auto whole = read_wav(std::as_bytes(std::span(file)), "x");
    ASSERT_TRUE(whole);
    if (announced) file += "LIST....what follows is no sound";
    for (const size_t piece : {1, 3, 43, 44, 1000, 9000}) {
      int rate_hz = 0;
      Status status;
      EXPECT_EQ(through_pipe({}, file, piece, rate_hz, status), whole->samples) << piece;
      EXPECT_TRUE(status);
      EXPECT_EQ(rate_hz, 22050);
    }
  }
}

TEST(PcmStream, ZeroSizeReachesToTheEnd) {
  const auto written = [&](uint32_t all, const std::string& rest) {
    return riff(kMono16 + "data" + number(0, 4) + rest).replace(4, 4, number(all, 4));
  };
  int rate_hz = 0;
  for (const size_t times : {1, 2, 3, 50}) {  // a sound of 4 bytes may be part of a chunk's head
    std::string sound;
    std::vector<float> expected;
    for (size_t i = 0; i < times; ++i) {
      sound += number(0xC0004000, 4);
      expected.insert(expected.end(), {0.5f, -0.5f});
    }
    const auto closed = static_cast<uint32_t>(36 + sound.size());
    for (const uint32_t all : {0u, 36u, 0xFFFFFFFFu, 0x7FFFF024u, closed}) {
      for (const size_t piece : {3, 4096}) {
        Status status;
        EXPECT_EQ(through_pipe({}, written(all, sound), piece, rate_hz, status), expected) << all << ", " << times;
        EXPECT_TRUE(status) << all;
      }
    }
  }
  const std::string tags = chunk("LIST", "abcd");
  for (const size_t piece : {3, 4096}) {
    Status status;
    through_pipe({}, written(36 + 12, tags), piece, rate_hz, status);  // no sound, and a chunk
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("contains no audio"), std::string::npos);
  }
}

// Neither integers nor sound: a stream goes on, clipped, where it can say so.
TEST(PcmStream, ClipsFloatsOfNoScale) {
  std::vector<float> written(100, 0.25f), expected = written;
  for (int i = 0; i < 100; ++i) {
    written.insert(written.end(), {-99.5f, 0.5f});
    expected.insert(expected.end(), {-1.0f, 0.5f});
  }
  auto format = parse_pcm_format("f32");
  ASSERT_TRUE(format);
  format->rate_hz = 16000;
  format->channels = 1;
  const std::string name = "it";
  const SoundLimits limits;
  for (const bool warns : {false, true}) {
    std::vector<float> got;
    std::vector<std::string> warnings;
    SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                   .add =
                       [&](std::span<const float> block) {
                         got.insert(got.end(), block.begin(), block.end());
                         return Status();
                       }};
    if (warns) sink.warn = [&](const std::string& sentence) { warnings.push_back(sentence); };
    PcmStream stream(*format, name, limits, sink);
    Status status = stream.push(std::as_bytes(std::span(written)).first(400));
    EXPECT_TRUE(status);
    if (status) status = stream.push(std::as_bytes(std::span(written)).subspan(400));
    EXPECT_EQ(status.has_value(), warns);
    if (!warns) continue;
    EXPECT_TRUE(stream.finish());
    ASSERT_EQ(got.size(), expected.size());
    EXPECT_EQ(std::vector<float>(got.begin() + 120, got.end()),
              std::vector<float>(expected.begin() + 120, expected.end()));
    EXPECT_EQ(warnings, (std::vector<std::string>{
                            "'it' has float samples of up to 99.5, where full scale is 1; divide them, or write "
                            "integers; they are clipped"}));
  }
}

// As what comes tells: whole numbers beyond 1 are integers.
TEST(PcmStream, ScalesFloatsOfIntegers) {
  std::vector<float> written = {0, 1, -1, 2, -16384, 8192};
  const std::string bytes(reinterpret_cast<const char*>(written.data()), written.size() * sizeof(float));
  auto format = parse_pcm_format("f32");
  ASSERT_TRUE(format);
  format->rate_hz = 16000;
  format->channels = 1;
  for (float& sample : written) sample /= 32768;
  for (const size_t piece : {1, 4, 9, 24}) {
    int rate_hz = 0;
    Status status;
    EXPECT_EQ(through_pipe(*format, bytes, piece, rate_hz, status), written);
    EXPECT_TRUE(status);
  }
}

TEST(PcmStream, TakesRawSamples) {
  const std::string bytes = {0, 64, 0, 0, 0, -64, 1};  // 0.5, 0, -0.5, and half a sample
  auto format = parse_pcm_format("s16");
  ASSERT_TRUE(format);
  format->rate_hz = 16000;
  format->channels = 1;
  for (const size_t piece : {1, 2, 5, 7}) {
    int rate_hz = 0;
    Status status;
    EXPECT_EQ(through_pipe(*format, bytes, piece, rate_hz, status), (std::vector<float>{0.5f, 0, -0.5f}));
    EXPECT_TRUE(status);
    EXPECT_EQ(rate_hz, 16000);
  }
  EXPECT_EQ(parse_pcm_format("u7").error().code, Code::kInvalidArgument);
}

TEST(PcmStream, RefusesOtherFormatsAndLongHeads) {
  int rate_hz = 0;
  for (const auto& [bytes, code] :
       {std::pair(std::string("fLaC and so on, and on"), Code::kDataLoss),
        {std::string(), Code::kDataLoss},
        {"RIFF....WAVEjunk" + std::string(4, '\xff') + std::string(3 << 20, 'x'), Code::kLimitExceeded}}) {
    Status status;
    through_pipe({}, bytes, 4096, rate_hz, status);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, code) << status.error().message;
  }
}

}  // namespace
}  // namespace syrinx
