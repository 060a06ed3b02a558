#include "models/pocket_tts/voice_recording.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "audio/resample.h"

namespace syrinx::pocket {
namespace {

constexpr double kFrameSeconds = 0.02, kPauseSeconds = 0.08, kFloorDb = 35.0;
constexpr double kSilenceDb = -60.0;       // of the loudest 20 ms; a whisper close to the microphone has about -40
constexpr float kLargestSample = 1000.0f;  // files of floats may go beyond 1, but not without end

size_t samples_of(double seconds, int rate_hz) { return static_cast<size_t>(seconds * rate_hz); }

double level_db(std::span<const float> frame) {
  double squares = 0;
  for (const float sample : frame) squares += static_cast<double>(sample) * static_cast<double>(sample);
  return 20 * std::log10(std::sqrt(squares / static_cast<double>(frame.size())) + 1e-12);
}

size_t frame_of(int rate_hz) { return std::max<size_t>(1, samples_of(kFrameSeconds, rate_hz)); }

double loudest_db(std::span<const float> sound, int rate_hz) {
  double loudest = -std::numeric_limits<double>::infinity();
  for (const size_t frame = frame_of(rate_hz); !sound.empty(); sound = sound.subspan(std::min(frame, sound.size())))
    loudest = std::max(loudest, level_db(sound.first(std::min(frame, sound.size()))));
  return loudest;
}

}  // namespace

std::vector<float> end_on_pause(std::span<const float> sound, int rate_hz) {
  const size_t frame = frame_of(rate_hz);
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

Result<std::vector<float>> prepare_recording(const Recording& recording, int rate_hz, bool truncate,
                                             const std::string& name) {
  std::span<const float> sound = recording.samples;
  if (sound.empty()) return fail(Code::kInvalidArgument, "'{}' has no sound in it; a voice needs some seconds", name);
  if (!std::all_of(sound.begin(), sound.end(), [](float sample) { return std::abs(sample) <= kLargestSample; }))
    return fail(Code::kDataLoss, "'{}' has samples beyond {}, where sound lies between -1 and 1; export it again", name,
                kLargestSample);
  if (truncate) sound = sound.first(std::min(sound.size(), samples_of(kTruncateSeconds, recording.rate_hz)));
  if (sound.size() > samples_of(kMaxRecordingSeconds, recording.rate_hz))
    return fail(Code::kLimitExceeded, "'{}' has {:.0f} s of sound, at most {:.0f} s make a voice; 10 to 30 s are best",
                name, recording.seconds(), kMaxRecordingSeconds);
  if (loudest_db(sound, recording.rate_hz) < kSilenceDb)
    return fail(Code::kInvalidArgument, "'{}' is silent: nothing in its {:.1f} s is louder than {:.0f} dB", name,
                static_cast<double>(sound.size()) / recording.rate_hz, kSilenceDb);

  SYRINX_TRY(const std::vector<float> converted, resample(sound, recording.rate_hz, rate_hz));
  std::vector<float> ended = end_on_pause(converted, rate_hz);
  if (ended.size() < samples_of(kMinRecordingSeconds + kPauseSeconds, rate_hz))
    return fail(Code::kInvalidArgument,
                "'{}' has {:.2f} s of sound before silence, a voice needs {:.2f} s; 10 to 30 s "
                "are best",
                name, std::max(0.0, static_cast<double>(ended.size()) / rate_hz - kPauseSeconds), kMinRecordingSeconds);
  return ended;
}

Result<std::vector<float>> read_voice_recording(std::span<const std::byte> file, int rate_hz, bool truncate,
                                                const std::string& name) {
  SoundLimits limits;
  if (!truncate) limits.max_seconds = kMaxRecordingSeconds;
  SYRINX_TRY(const Recording recording, read_recording(file, name, limits));
  return prepare_recording(recording, rate_hz, truncate, name);
}

}  // namespace syrinx::pocket
