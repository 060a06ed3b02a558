// The network against a twin in double, written from the specification's formulas; then the rules of steps: neither the
// number of windows in a call nor the cutting of the sound changes a bit, and nothing is allocated.
#include "models/silero/vad.h"

#include "../../base/temp_folder.h"
#include "allocation_count.h"
#include "container_writer.h"

namespace syrinx::silero {
namespace {

using Plane = std::vector<std::vector<double>>;  // [frames][channels]

Plane convolve(const Plane& in, const Tensors::Conv& conv, EncoderShape shape, size_t stride) {
  Plane out;
  for (size_t t = 0; t + kEncoderTaps <= in.size() + 2; t += stride) {
    std::vector<double>& row = out.emplace_back(shape.outputs);
    for (size_t n = 0; n < shape.outputs; ++n) {
      double sum = conv.bias[n];
      for (size_t j = 0; j < kEncoderTaps; ++j) {
        if (t + j < 1 || t + j > in.size()) continue;
        for (size_t k = 0; k < shape.inputs; ++k)
          sum += in[t + j - 1][k] * static_cast<double>(conv.weight[(n * shape.inputs + k) * kEncoderTaps + j]);
      }
      row[n] = std::max(sum, 0.0);
    }
  }
  return out;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Twin {
  const Tensors& w;
  Framing framing;
  std::vector<double> context = std::vector<double>(64), hidden = std::vector<double>(128), cell = hidden;

  std::vector<double> framed(std::span<const float> x) {
    std::vector<double> v;
    if (framing == Framing::kCarried) {
      v = context;
      context.assign(x.end() - 64, x.end());
    } else {
      for (size_t i = 64; i >= 1; --i) v.push_back(x[i]);
    }
    v.insert(v.end(), x.begin(), x.end());
    for (size_t j = 0; j < 64; ++j) v.push_back(v[574 - j]);
    return v;
  }

  double window(std::span<const float> x) {
    const std::vector<double> v = framed(x);
    Plane plane(4, std::vector<double>(129));
    for (size_t t = 0; t < 4; ++t) {
      for (size_t k = 0; k < 129; ++k) {
        double re = 0, im = 0;
        for (size_t n = 0; n < 256; ++n) {
          re += w.basis[k * 256 + n] * v[128 * t + n];
          im += w.basis[(129 + k) * 256 + n] * v[128 * t + n];
        }
        plane[t][k] = std::sqrt(re * re + im * im);
      }
    }
    constexpr size_t kStrides[] = {1, 2, 2, 1};
    for (size_t i = 0; i < kEncoderLayers; ++i) plane = convolve(plane, w.encoder[i], kEncoder[i], kStrides[i]);
    std::vector<double> gates(512);
    for (size_t n = 0; n < 512; ++n) {
      gates[n] = static_cast<double>(w.input_bias[n]) + static_cast<double>(w.recurrent_bias[n]);
      for (size_t k = 0; k < 128; ++k)
        gates[n] += w.input_weight[n * 128 + k] * plane[0][k] + w.recurrent_weight[n * 128 + k] * hidden[k];
    }
    double logit = w.output_bias[0];
    for (size_t i = 0; i < 128; ++i) {
      cell[i] = sigmoid(gates[128 + i]) * cell[i] + sigmoid(gates[i]) * std::tanh(gates[256 + i]);
      hidden[i] = sigmoid(gates[384 + i]) * std::tanh(cell[i]);
      logit += w.output_weight[i] * std::max(hidden[i], 0.0);
    }
    return sigmoid(logit);
  }
};

std::vector<float> noise(size_t samples, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> sound(samples);
  for (size_t i = 0; i < samples; ++i) sound[i] = rng.normal() * (i / 4000 % 2 == 0 ? 0.3f : 0.02f);
  return sound;
}

TEST(SileroVad, EqualsTheTwinInDouble) {
  const Tensors tensors = random_tensors(3);
  const SileroVad vad(tensors);
  const std::vector<float> sound = noise(40 * kWindowSamples, 4);
  for (const Framing framing : {Framing::kCarried, Framing::kMirrored}) {
    const std::vector<float> found = speech_probabilities(vad, sound, framing);
    ASSERT_EQ(found.size(), 40u);
    Twin twin{tensors, framing};
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], twin.window(std::span(sound).subspan(i * kWindowSamples, kWindowSamples)), 1e-5) << i;
    EXPECT_GT(*std::max_element(found.begin(), found.end()) - *std::min_element(found.begin(), found.end()), 0.1f);
  }
}

TEST(SileroVad, AnyNumberOfWindowsInACallGivesTheSameBits) {
  const SileroVad vad(random_tensors(5));
  const std::vector<float> sound = noise(61 * kWindowSamples, 6);
  for (const Framing framing : {Framing::kCarried, Framing::kMirrored}) {
    const std::vector<float> whole = speech_probabilities(vad, sound, framing);
    for (const size_t at_once : {1u, 2u, 3u, 4u, 5u, 11u, 12u, 13u}) {
      VadState state(framing);
      VadScratch scratch;
      std::vector<float> pieces(whole.size());
      for (size_t i = 0; i < pieces.size(); i += at_once) {
        const size_t windows = std::min<size_t>(at_once, pieces.size() - i);
        vad.step(std::span(sound).subspan(i * kWindowSamples, windows * kWindowSamples), state, scratch,
                 std::span(pieces).subspan(i, windows));
      }
      EXPECT_EQ(pieces, whole) << at_once;
    }
  }
}

TEST(SileroVad, AStepAllocatesNothingAndResetEqualsFresh) {
  const SileroVad vad(random_tensors(8));
  const std::vector<float> sound = noise(30 * kWindowSamples, 9);
  VadState state;
  VadScratch scratch;
  std::vector<float> first(30), second(30);
  vad.step(sound, state, scratch, first);  // the first call of a kernel finds out what the processor has
  state.reset();
  const size_t before = allocation_count();
  vad.step(sound, state, scratch, first);
  state.reset();
  vad.step(sound, state, scratch, second);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(first, second);
}

TEST(SileroVad, NonFiniteSamplesCountAsSilence) {
  const SileroVad vad(random_tensors(8));
  std::vector<float> broken = noise(6 * kWindowSamples, 9), silent = broken;
  for (size_t i = 700; i < 900; ++i) {
    broken[i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
    silent[i] = 0;
  }
  EXPECT_EQ(speech_probabilities(vad, broken), speech_probabilities(vad, silent));
  for (float& sample : broken) sample = std::numeric_limits<float>::max();
  for (const float p : speech_probabilities(vad, broken)) EXPECT_TRUE(p >= 0 && p <= 1) << p;
}

TEST(SileroVad, TheLastWindowIsFilledUp) {
  const SileroVad vad(random_tensors(8));
  EXPECT_TRUE(speech_probabilities(vad, {}).empty());
  std::vector<float> sound = noise(2 * kWindowSamples + 1, 2);
  const std::vector<float> found = speech_probabilities(vad, sound);
  sound.resize(3 * kWindowSamples);
  EXPECT_EQ(found, speech_probabilities(vad, sound));
}

TEST(SileroVad, LoadsAFile) {
  const TempFolder folder;
  const std::string path = folder.file("voice.bin");
  const WrittenContainer written = write_container(random_tensors(5));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(written.bytes.data()), static_cast<std::streamsize>(written.bytes.size()));
  const auto vad = SileroVad::load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(vad) << vad.error().message;
  const std::vector<float> sound = noise(4 * kWindowSamples, 1);
  EXPECT_EQ(speech_probabilities(**vad, sound), speech_probabilities(SileroVad(random_tensors(5)), sound));
  EXPECT_EQ(SileroVad::load(path).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace syrinx::silero
