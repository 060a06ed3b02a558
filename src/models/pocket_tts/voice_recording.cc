#include "models/pocket_tts/voice_recording.h"

#include <algorithm>
#include <cmath>

#include "audio/resample.h"

namespace syrinx::pocket {
namespace {

constexpr double kFrameSeconds = 0.02, kPauseSeconds = 0.08, kFloorDb = 35.0;
constexpr float kLargestSample = 1000.0f;  // files of floats may go beyond 1, but not without end

size_t samples_of(double seconds, int rate_hz) { return static_cast<size_t>(seconds * rate_hz); }

double level_db(std::span<const float> frame) {
  double squares = 0;
  for (const float sample : frame) squares += static_cast<double>(sample) * static_cast<double>(sample);
  return 20 * std::log10(std::sqrt(squares / static_cast<double>(frame.size())) + 1e-12);
}

}  // namespace

std::vector<float> mix_to_mono(const WavSound& sound) {
  const size_t channels = static_cast<size_t>(sound.channels);
  std::vector<float> out(sound.frames());
  for (size_t i = 0; i < out.size(); ++i) {
    float sum = 0;
    for (size_t c = 0; c < channels; ++c) sum += sound.samples[i * channels + c];
    out[i] = sum / static_cast<float>(channels);
  }
  return out;
}

std::vector<float> end_on_pause(std::span<const float> sound, int rate_hz) {
  const size_t frame = std::max<size_t>(1, samples_of(kFrameSeconds, rate_hz));
  std::vector<double> levels(sound.size() / frame);
  if (levels.empty()) return {sound.begin(), sound.end()};
  for (size_t i = 0; i < levels.size(); ++i) levels[i] = level_db(sound.subspan(i * frame, frame));
  const double floor = *std::max_element(levels.begin(), levels.end()) - kFloorDb;
  while (levels.size() > 1 && levels.back() <= floor) levels.pop_back();

  const size_t end = levels.size() * frame;
  std::vector<float> out(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(end));
  for (size_t i = 0; frame > 1 && i < frame; ++i)
    out[end - frame + i] *= static_cast<float>(frame - 1 - i) / static_cast<float>(frame - 1);
  out.resize(end + samples_of(kPauseSeconds, rate_hz), 0.0f);
  return out;
}

Result<std::vector<float>> prepare_recording(const WavSound& sound, int rate_hz, bool truncate,
                                             const std::string& name) {
  std::vector<float> mono = mix_to_mono(sound);
  if (mono.empty()) return fail(Code::kInvalidArgument, "'{}' has no sound in it; a voice needs some seconds", name);
  if (!std::all_of(mono.begin(), mono.end(), [](float sample) { return std::abs(sample) <= kLargestSample; }))
    return fail(Code::kDataLoss, "'{}' has samples beyond {}, where sound lies between -1 and 1; export it again", name,
                kLargestSample);
  if (truncate) mono.resize(std::min(mono.size(), samples_of(kTruncateSeconds, sound.rate_hz)));
  if (mono.size() > samples_of(kMaxRecordingSeconds, sound.rate_hz))
    return fail(Code::kLimitExceeded, "'{}' has {:.0f} s of sound, at most {:.0f} s make a voice; 10 to 30 s are best",
                name, sound.seconds(), kMaxRecordingSeconds);
  SYRINX_TRY(const std::vector<float> converted, resample(mono, sound.rate_hz, rate_hz));
  return end_on_pause(converted, rate_hz);
}

}  // namespace syrinx::pocket
