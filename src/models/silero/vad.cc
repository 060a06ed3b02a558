#include "models/silero/vad.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/mapped_file.h"
#include "kernels/conv.h"
#include "kernels/lstm_cell.h"
#include "kernels/row_conv.h"

namespace syrinx::silero {
namespace {

constexpr size_t kFrames = 4, kHop = 128;  // of a window
constexpr size_t kFramed = 640;            // samples with what surrounds them
constexpr size_t kSpectrum = round_up(2 * kBins, kPanelColumns);
constexpr size_t kMagnitude = round_up(kBins, kDepthGroup);
constexpr size_t kPadded = kFrames + 1;  // rows of a window and the zeros before it
constexpr size_t kWide = 128, kNarrow = 64, kGates = 4 * kHidden;
constexpr float kLoudest = 32768.0f;  // integers taken for fractions still give finite sums

static_assert((kFrames - 1) * kHop + kBasisSamples == kFramed);

// Rows to multiply by one matrix: `frames` of each window.  Steps count floats.
struct Rows {
  const float* in = nullptr;
  size_t frame_step = 0, window_step = 0, tap_step = 0;
  float* out = nullptr;
  size_t out_frame_step = 0, out_window_step = 0;
  size_t frames = 1;
};

// A call takes the frames of one window, or one frame of all windows, whichever are more: it reads the weights once.
void multiply(const kernels::OwnedMatrix& matrix, const Rows& rows, size_t windows) {
  const bool by_window = rows.frames >= windows;
  const size_t calls = by_window ? windows : rows.frames, count = by_window ? rows.frames : windows;
  for (size_t i = 0; i < calls; ++i) {
    const kernels::RowConv conv{.input = rows.in + i * (by_window ? rows.window_step : rows.frame_step),
                                .rows = count,
                                .row_step = by_window ? rows.frame_step : rows.window_step,
                                .tap_step = rows.tap_step,
                                .output = rows.out + i * (by_window ? rows.out_window_step : rows.out_frame_step),
                                .stride = by_window ? rows.out_frame_step : rows.out_window_step};
    kernels::row_conv(matrix.view, conv, {0, count}, {0, matrix.view.panel_count()});
  }
}

void relu(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = std::max(values[i], 0.0f);
}

// NaN and infinity are silence: one of them in the LSTM's state would stay there for ever.
void copy_sound(const float* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = std::isfinite(from[i]) ? std::clamp(from[i], -kLoudest, kLoudest) : 0.0f;
}

// 512 new samples with 64 on either side, as the framing has them: 640.
void frame_window(const float* samples, VadState& state, float* framed) {
  float* const own = framed + kContextSamples;
  copy_sound(samples, kWindowSamples, own);
  if (state.framing == Framing::kCarried) {
    std::copy(state.context.begin(), state.context.end(), framed);
    std::copy_n(own + kWindowSamples - kContextSamples, kContextSamples, state.context.begin());
  } else {
    for (size_t i = 1; i <= kContextSamples; ++i) own[-static_cast<ptrdiff_t>(i)] = own[i];
  }
  float* const end = own + kWindowSamples;
  for (size_t i = 0; i < kContextSamples; ++i) end[i] = end[-static_cast<ptrdiff_t>(i) - 2];
}

// spectrum [frames, 288] -> magnitude [frames, 132].
void magnitudes(const float* spectrum, float* magnitude) {
  for (size_t t = 0; t < kFrames; ++t, spectrum += kSpectrum, magnitude += kMagnitude) {
    for (size_t k = 0; k < kBins; ++k) {
      const float re = spectrum[k], im = spectrum[kBins + k];
      magnitude[k] = std::sqrt(re * re + im * im);
    }
  }
}

// Taps [first, first + taps) of an encoder layer's three.
kernels::OwnedMatrix pack_conv(const Tensors::Conv& conv, EncoderShape shape, size_t first, size_t taps) {
  return kernels::pack_f32(
      {.columns = shape.outputs, .channels = shape.inputs, .taps = taps},
      [&](size_t n, size_t k, size_t t) { return conv.weight[(n * shape.inputs + k) * kEncoderTaps + first + t]; },
      conv.bias);
}

kernels::OwnedMatrix pack_rows(const std::vector<float>& weight, size_t columns, size_t channels,
                               std::span<const float> bias) {
  return kernels::pack_f32(
      {.columns = columns, .channels = channels}, [&](size_t n, size_t k, size_t) { return weight[n * channels + k]; },
      bias);
}

}  // namespace

VadScratch::VadScratch()
    : framed(kWindowsAtOnce * kFramed),
      spectrum(kWindowsAtOnce * kFrames * kSpectrum),
      magnitude((kWindowsAtOnce * kPadded + 1) * kMagnitude),
      encoded0((kWindowsAtOnce * kPadded + 1) * kWide),
      encoded1(kWindowsAtOnce * 2 * kNarrow),
      encoded2(kWindowsAtOnce * kNarrow),
      encoded3(kWindowsAtOnce * kHidden),
      gates(kWindowsAtOnce * kGates),
      sums(kGates),
      gemv(kernels::gemv_scratch_bytes({.columns = kGates, .channels = kHidden})) {}

// The third layer's first tap and the fourth's outer ones see nothing but padding: they have 2 frames, and 1.
SileroVad::SileroVad(const Tensors& tensors)
    : basis_(pack_rows(tensors.basis, 2 * kBins, kBasisSamples, {})),
      conv_{pack_conv(tensors.encoder[0], kEncoder[0], 0, 3), pack_conv(tensors.encoder[1], kEncoder[1], 0, 3),
            pack_conv(tensors.encoder[2], kEncoder[2], 1, 2), pack_conv(tensors.encoder[3], kEncoder[3], 1, 1)},
      output_weight_(tensors.output_weight),
      output_bias_(tensors.output_bias.at(0)) {
  std::vector<float> bias(kGates);
  for (size_t i = 0; i < kGates; ++i) bias[i] = tensors.input_bias[i] + tensors.recurrent_bias[i];
  input_ = pack_rows(tensors.input_weight, kGates, kHidden, bias);
  recurrent_ = pack_rows(tensors.recurrent_weight, kGates, kHidden, {});
}

Result<std::shared_ptr<const SileroVad>> SileroVad::load(const std::string& path) {
  SYRINX_TRY(const MappedFile file, MappedFile::open(path));
  SYRINX_TRY(const Tensors tensors, parse_container(file.bytes(), path));
  return std::make_shared<const SileroVad>(tensors);
}

// Everything up to the gates' share of the window; rows of zeros in the scratch are the convolutions' padding.
void SileroVad::encode(size_t windows, VadScratch& s) const {
  multiply(basis_,
           {.in = s.framed.data(),
            .frame_step = kHop,
            .window_step = kFramed,
            .out = s.spectrum.data(),
            .out_frame_step = kSpectrum,
            .out_window_step = kFrames * kSpectrum,
            .frames = kFrames},
           windows);
  for (size_t w = 0; w < windows; ++w)
    magnitudes(s.spectrum.data() + w * kFrames * kSpectrum, s.magnitude.data() + (w * kPadded + 1) * kMagnitude);
  multiply(conv_[0],
           {.in = s.magnitude.data(),
            .frame_step = kMagnitude,
            .window_step = kPadded * kMagnitude,
            .tap_step = kMagnitude,
            .out = s.encoded0.data() + kWide,
            .out_frame_step = kWide,
            .out_window_step = kPadded * kWide,
            .frames = kFrames},
           windows);
  relu(s.encoded0.data(), windows * kPadded * kWide + kWide);
  multiply(conv_[1],
           {.in = s.encoded0.data(),
            .frame_step = 2 * kWide,
            .window_step = kPadded * kWide,
            .tap_step = kWide,
            .out = s.encoded1.data(),
            .out_frame_step = kNarrow,
            .out_window_step = 2 * kNarrow,
            .frames = 2},
           windows);
  relu(s.encoded1.data(), windows * 2 * kNarrow);
  multiply(conv_[2],
           {.in = s.encoded1.data(),
            .window_step = 2 * kNarrow,
            .tap_step = kNarrow,
            .out = s.encoded2.data(),
            .out_window_step = kNarrow},
           windows);
  relu(s.encoded2.data(), windows * kNarrow);
  multiply(conv_[3],
           {.in = s.encoded2.data(), .window_step = kNarrow, .out = s.encoded3.data(), .out_window_step = kHidden},
           windows);
  relu(s.encoded3.data(), windows * kHidden);
  multiply(input_, {.in = s.encoded3.data(), .window_step = kHidden, .out = s.gates.data(), .out_window_step = kGates},
           windows);
}

// The LSTM's step and the output; the state keeps the hidden values from before the output's ReLU.
float SileroVad::decode(const float* window_gates, VadState& state, VadScratch& s) const {
  kernels::gemv(recurrent_.view, state.hidden.data(), window_gates, s.sums.data(), {0, recurrent_.view.panel_count()},
                s.gemv.span());
  kernels::lstm_cell(s.sums.span(), state.cell, state.hidden);
  float active[kHidden];
  std::copy(state.hidden.begin(), state.hidden.end(), active);
  relu(active, kHidden);
  float logit = 0;
  kernels::row_dot(output_weight_.data(), kHidden, output_bias_, active, kHidden, &logit, {0, 1});
  return 1.0f / (1.0f + std::exp(-logit));
}

void SileroVad::pass(const float* samples, size_t windows, VadState& state, VadScratch& s, float* probabilities) const {
  for (size_t w = 0; w < windows; ++w) frame_window(samples + w * kWindowSamples, state, s.framed.data() + w * kFramed);
  encode(windows, s);
  for (size_t w = 0; w < windows; ++w) probabilities[w] = decode(s.gates.data() + w * kGates, state, s);
}

void SileroVad::step(std::span<const float> samples, VadState& state, VadScratch& scratch,
                     std::span<float> probabilities) const {
  SYRINX_CHECK(samples.size() == probabilities.size() * kWindowSamples, "{} samples, {} windows", samples.size(),
               probabilities.size());
  for (size_t first = 0; first < probabilities.size(); first += kWindowsAtOnce) {
    const size_t windows = std::min(kWindowsAtOnce, probabilities.size() - first);
    pass(samples.data() + first * kWindowSamples, windows, state, scratch, probabilities.data() + first);
  }
}

std::vector<float> speech_probabilities(const SileroVad& vad, std::span<const float> samples, Framing framing,
                                        const std::function<bool()>& is_wanted, const std::function<void()>& between,
                                        float gain) {
  constexpr size_t kWindowsAStep = 8 * kWindowsAtOnce, kWindowsAMinute = 20 * kWindowsAStep;
  const size_t whole = samples.size() / kWindowSamples, rest = samples.size() % kWindowSamples;
  std::vector<float> probabilities(whole + (rest > 0 ? 1 : 0));
  VadState state(framing);
  VadScratch scratch;
  std::vector<float> raised;
  const auto at_level = [&](std::span<const float> some) {
    if (gain == 1) return some;
    raised.resize(some.size());
    std::ranges::transform(some, raised.begin(), [=](float sample) { return std::clamp(sample * gain, -1.0f, 1.0f); });
    return std::span<const float>(raised);
  };
  for (size_t first = 0; first < whole; first += kWindowsAStep) {
    if (is_wanted && first % kWindowsAMinute == 0 && !is_wanted()) return {};
    const size_t count = std::min(kWindowsAStep, whole - first);
    vad.step(at_level(samples.subspan(first * kWindowSamples, count * kWindowSamples)), state, scratch,
             std::span(probabilities).subspan(first, count));
    if (between) between();
  }
  if (rest > 0) {
    std::array<float, kWindowSamples> last{};
    std::copy_n(samples.end() - static_cast<ptrdiff_t>(rest), rest, last.begin());
    vad.step(at_level(last), state, scratch, std::span(probabilities).last(1));
  }
  return probabilities;
}

}  // namespace syrinx::silero
