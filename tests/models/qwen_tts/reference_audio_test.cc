#include "models/qwen_tts/reference_audio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "../../base/temp_folder.h"
#include "audio/wav.h"

namespace syrinx::qwen_tts {
namespace {

using testing::HasSubstr;

constexpr int kRate = 24000;

// A tone of so many seconds at this level, between silences.
std::vector<float> tone(double before_s, double sound_s, double after_s, float level = 0.3f, int rate_hz = kRate) {
  const auto samples = [&](double seconds) { return static_cast<size_t>(seconds * rate_hz); };
  std::vector<float> out(samples(before_s));
  for (size_t i = 0; i < samples(sound_s); ++i)
    out.push_back(level * static_cast<float>(std::sin(0.1 * static_cast<double>(i))));
  out.resize(out.size() + samples(after_s));
  return out;
}

ReferenceAudio prepared(std::vector<float> samples, const ReferenceOptions& options = {}, int rate_hz = kRate) {
  auto reference = prepare_reference({.rate_hz = rate_hz, .samples = std::move(samples)}, kRate, options, "v.wav");
  EXPECT_TRUE(reference) << reference.error().message;
  return reference ? std::move(*reference) : ReferenceAudio{};
}

TEST(QwenReference, SilenceIsTrimmedAndAppended) {
  const std::vector<float> samples = tone(1.0, 2.0, 1.5);
  const ReferenceAudio reference = prepared(samples);
  EXPECT_EQ(reference.sound_samples, static_cast<size_t>((2.0 + 2 * 0.04) * kRate));
  EXPECT_EQ(reference.samples.size(), reference.sound_samples + kRate / 2);
  EXPECT_TRUE(std::equal(reference.sound().begin(), reference.sound().end(), samples.begin() + kRate - 960));
  for (size_t i = reference.sound_samples; i < reference.samples.size(); ++i) ASSERT_EQ(reference.samples[i], 0.0f);
}

TEST(QwenReference, QuietNoiseCountsAsSilence) {
  std::vector<float> samples = tone(0.5, 1.0, 0.5);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] += i % 2 == 0 ? 1e-3f : -1e-3f;  // 46 dB below the tone
  EXPECT_EQ(prepared(samples).sound_samples, static_cast<size_t>(1.08 * kRate));
}

TEST(QwenReference, SoundAtTheEndsIsKept) {
  const std::vector<float> samples = tone(0, 1.013, 0);
  const ReferenceAudio reference = prepared(samples, {.trim = true, .silence_s = 0});
  EXPECT_EQ(reference.samples, samples);
}

// One or two loud samples in the last frame, or 20 ms of them before speech.
TEST(QwenReference, ClicksDoNotMakeSpeechSilence) {
  std::vector<float> quiet = tone(0, 1, 0, 0.005f);
  quiet.push_back(0.9f);
  EXPECT_EQ(prepared(quiet).sound_samples, quiet.size());
  quiet.push_back(-0.9f);
  EXPECT_EQ(prepared(quiet).sound_samples, quiet.size());
  std::vector<float> speech = tone(0.507, 2, 0, 0.0126f);  // -41 dB
  std::fill_n(speech.begin() + 2390, kRate / 50, 0.9f);
  const ReferenceAudio reference = prepared(speech);
  EXPECT_GT(reference.sound_samples, size_t{2} * kRate);
}

TEST(QwenReference, ConstantsAreSilence) {
  std::vector<float> samples = tone(1.0, 2.0, 1.5, 0.1f);
  for (float& sample : samples) sample += 0.01f;
  EXPECT_EQ(prepared(samples).sound_samples, static_cast<size_t>(2.08 * kRate));
}

TEST(QwenReference, WithoutTrimTheRecordingIsTheMakers) {
  const std::vector<float> samples = tone(1.0, 0.2, 1.5);
  EXPECT_EQ(prepared(samples, {.trim = false, .silence_s = 0}).samples, samples);
  EXPECT_EQ(prepared(samples, {.trim = false, .silence_s = 0.25}).samples.size(), samples.size() + kRate / 4);
}

TEST(QwenReference, OtherRatesAreConverted) {
  const ReferenceAudio reference = prepared(tone(0, 2, 0, 0.3f, 48000), {.trim = false, .silence_s = 0}, 48000);
  EXPECT_EQ(reference.samples.size(), size_t{2} * kRate);
}

TEST(QwenReference, FilesAreRead) {
  for (const char* name : {"flac_stereo_44100.flac", "mp3_24000.mp3", "opus_48000.opus"}) {
    const std::string bytes = read_text(std::string(SYRINX_TEST_DATA) + "/audio/" + name);
    const auto reference = read_reference(std::as_bytes(std::span(bytes)), kRate, {.trim = false}, name);
    ASSERT_FALSE(reference) << name;  // 0.4 s
    EXPECT_THAT(reference.error().message, HasSubstr("s of sound, a voice needs 0.5 s"));
  }
  const auto header = wav_header(kRate, 2 * kRate);
  std::string wav(reinterpret_cast<const char*>(header.data()), header.size());
  for (int i = 0; i < kRate; ++i) wav += {'\0', static_cast<char>(i % 100)};  // 16 bits
  const auto reference = read_reference(std::as_bytes(std::span(wav)), kRate, {}, "v.wav");
  ASSERT_TRUE(reference) << reference.error().message;
  EXPECT_EQ(reference->sound_samples, size_t{kRate});
  EXPECT_EQ(reference->samples.size(), size_t{kRate} + kRate / 2);
}

struct Fault {
  const char* name;
  Recording recording;
  Code code;
  const char* part;
  ReferenceOptions options = {};
};

TEST(QwenReference, UnusableRecordingsAreRefusedInASentence) {
  std::vector<float> broken = tone(0, 1, 0);
  broken[12000] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> loud = tone(0, 1, 0);
  loud[12000] = 3e38f;
  std::vector<float> clicks(kRate);
  clicks[5000] = clicks[5001] = 0.9f;
  const Fault faults[] = {
      {"empty", {kRate, {}}, Code::kInvalidArgument, "'v.wav' contains no audio; a voice needs some seconds"},
      {"long", {kRate, std::vector<float>(size_t{kRate} * 60 + 1)}, Code::kLimitExceeded, "at most 60 s make a voice"},
      {"silent", {kRate, std::vector<float>(kRate)}, Code::kInvalidArgument, "'v.wav' is silent"},
      {"quiet", {kRate, tone(0, 2, 0, 0.0009f)}, Code::kInvalidArgument, "clicks in its 2.0 s is louder than -60 dB"},
      {"constant", {kRate, std::vector<float>(3 * kRate, 0.01f)}, Code::kInvalidArgument, "'v.wav' is silent"},
      {"two loud samples", {kRate, clicks}, Code::kInvalidArgument, "'v.wav' is silent"},
      {"short", {kRate, tone(0, 0.49, 0)}, Code::kInvalidArgument, "has 0.49 s of sound, a voice needs 0.5 s"},
      {"click", {kRate, tone(2, 0.1, 2)}, Code::kInvalidArgument, "has 0.18 s of sound, a voice needs 0.5 s"},
      {"nan", {kRate, broken}, Code::kDataLoss, "samples that are no numbers, or beyond 1000"},
      {"beyond", {kRate, loud}, Code::kDataLoss, "samples that are no numbers, or beyond 1000"},
      {"rate", {999, tone(0, 1, 0)}, Code::kLimitExceeded, "999 Hz cannot be converted"},
      {"silence", {kRate, tone(0, 1, 0)}, Code::kInvalidArgument, "it must be from 0 to 2 s", {.silence_s = 2.5}},
      {"nan silence", {kRate, tone(0, 1, 0)}, Code::kInvalidArgument, "from 0 to 2 s", {.silence_s = std::nan("")}},
  };
  for (const Fault& fault : faults) {
    const auto reference = prepare_reference(fault.recording, kRate, fault.options, "v.wav");
    ASSERT_FALSE(reference) << fault.name;
    EXPECT_EQ(reference.error().code, fault.code) << fault.name;
    EXPECT_THAT(reference.error().message, HasSubstr(fault.part)) << fault.name;
  }
}

}  // namespace
}  // namespace syrinx::qwen_tts
