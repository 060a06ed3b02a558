// The installed Silero VAD against the golden values of its specification (silero-vad.md, section 7), which an
// independent forward pass in numpy made.  The file: $SYRINX_TEST_MODELS/silero-vad, else where `syrinx pull` puts it.
#include "models/silero/vad.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "audio/decode/recording.h"
#include "models/silero/speech_detector.h"

namespace syrinx::silero {
namespace {

constexpr double kTolerance = 1e-5;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string model_path() {
  const std::string file = "/silero-vad/ggml-silero-v6.2.0.bin";
  if (const std::string folder = variable("SYRINX_TEST_MODELS"); !folder.empty()) return folder + file;
  if (const std::string home = variable("SYRINX_HOME"); !home.empty()) return home + "/data/models" + file;
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) return data + "/syrinx/models" + file;
  return variable("HOME") + "/.local/share/syrinx/models" + file;
}

class RealSilero : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = SileroVad::load(model_path());
    ASSERT_TRUE(loaded) << loaded.error().message << " (run `syrinx pull silero-vad` first)";
    vad_ = *loaded;
  }
  // Two tones, one of them trembling.
  static std::vector<float> tones(size_t windows) {
    std::vector<float> samples(windows * kWindowSamples);
    for (size_t n = 0; n < samples.size(); ++n) {
      const double t = static_cast<double>(n) / kSampleRateHz, turn = 2 * M_PI * t;
      samples[n] =
          static_cast<float>(0.3 * std::sin(150 * turn) * (1 + std::sin(4 * turn)) + 0.1 * std::sin(1234 * turn));
    }
    return samples;
  }
  void expect(std::span<const float> samples, Framing framing, std::span<const double> golden) {
    const std::vector<float> found = speech_probabilities(*vad_, samples, framing);
    ASSERT_EQ(found.size(), golden.size());
    for (size_t i = 0; i < golden.size(); ++i) EXPECT_NEAR(found[i], golden[i], kTolerance) << "window " << i;
  }
  std::shared_ptr<const SileroVad> vad_;
};

TEST_F(RealSilero, SilenceHasTheGoldenValues) {
  const std::vector<float> silence(4 * kWindowSamples);
  const double golden[] = {0.001715, 0.007020, 0.008987, 0.007884};
  expect(silence, Framing::kCarried, golden);
  expect(silence, Framing::kMirrored, golden);
}

TEST_F(RealSilero, TonesHaveTheGoldenValues) {
  const double carried[] = {0.023706, 0.075880, 0.062889, 0.032467, 0.026027, 0.111050};
  const double mirrored[] = {0.031112, 0.046053, 0.043890, 0.090584, 0.077202, 0.064735};
  expect(tones(6), Framing::kCarried, carried);
  expect(tones(6), Framing::kMirrored, mirrored);
}

// A sentence read aloud, of Debian's package pocketsphinx-testdata: the specification's figures, whole and as a stream.
TEST_F(RealSilero, ARecordingHasTheGoldenSegmentAndEvents) {
  const std::string path = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav";
  const auto clip = read_recording(path);
  ASSERT_TRUE(clip) << clip.error().message << " (install pocketsphinx-testdata)";
  ASSERT_EQ(clip->samples.size(), 113600u);
  const std::vector<float> probabilities = speech_probabilities(*vad_, clip->samples);
  ASSERT_EQ(probabilities.size(), 222u);
  EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), 204.6885, 1e-3);
  EXPECT_EQ(speech_segments(probabilities, clip->samples.size(), {}), (std::vector<SpeechSpan>{{5152, 110560}}));

  SpeechDetector detector(vad_, {});
  VadScratch scratch;
  std::vector<SpeechEvent> events;
  std::vector<size_t> told;  // windows
  for (size_t i = 0; i < clip->samples.size(); i += 100) {
    const size_t before = events.size(), samples = std::min<size_t>(100, clip->samples.size() - i);
    detector.push(std::span(clip->samples).subspan(i, samples), scratch, events);
    if (events.size() > before) told.push_back(detector.judged() / kWindowSamples - 1);
  }
  EXPECT_EQ(told, (std::vector<size_t>{11, 219}));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].sample, 5152u);
  EXPECT_EQ(events[1].sample, 110560u);
}

double sum(std::span<const float> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Sums over the stages of the first window, given in six or seven digits.
TEST_F(RealSilero, StagesHaveTheGoldenSums) {
  VadState state;
  VadScratch s;
  float probability = 0;
  vad_->step(tones(1), state, s, {&probability, 1});
  EXPECT_NEAR(sum(s.magnitude.span()), 300.4337, 1e-3);
  EXPECT_NEAR(sum(s.encoded0.span()), 681.209, 2e-3);
  EXPECT_NEAR(sum(s.encoded1.span()), 133.217, 1e-3);
  EXPECT_NEAR(sum(s.encoded2.span()), 147.445, 1e-3);
  EXPECT_NEAR(sum(s.encoded3.span()), 29.7421, 1e-4);
  EXPECT_NEAR(sum(state.hidden), -5.25120, 1e-4);
  EXPECT_NEAR(sum(state.cell), -6.74459, 1e-4);
}

}  // namespace
}  // namespace syrinx::silero
