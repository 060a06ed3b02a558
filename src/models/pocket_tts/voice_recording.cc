#include "models/pocket_tts/voice_recording.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "audio/decode/sound_file.h"
#include "audio/stream_resampler.h"

namespace syrinx::pocket {
namespace {

constexpr double kFrameSeconds = 0.02, kPauseSeconds = 0.08, kFloorDb = 35.0;
constexpr double kSilenceDb = -60.0;       // of the loudest 20 ms; a whisper close to the microphone has about -40
constexpr float kLargestSample = 1000.0f;  // files of floats may go beyond 1, but not without end
constexpr size_t kBlockSamples = size_t{1} << 16;

size_t samples_of(double seconds, int rate_hz) { return static_cast<size_t>(seconds * rate_hz); }

double level_db(double squares, size_t samples) {
  return 20 * std::log10(std::sqrt(squares / static_cast<double>(samples)) + 1e-12);
}

double level_db(std::span<const float> frame) {
  double squares = 0;
  for (const float sample : frame) squares += static_cast<double>(sample) * static_cast<double>(sample);
  return level_db(squares, frame.size());
}

size_t frame_of(int rate_hz) { return std::max<size_t>(1, samples_of(kFrameSeconds, rate_hz)); }

// A sound made ready block by block: what is held of it is at the voice's rate, whatever its own one.
class Preparation {
 public:
  Preparation(int rate_hz, bool truncate, const std::string& name)
      : rate_hz_(rate_hz), truncate_(truncate), name_(name) {}

  Status begin(int from_hz);
  Status add(std::span<const float> samples);
  Result<std::vector<float>> finish();

 private:
  void listen(std::span<const float> samples);
  void end_frame();

  const int rate_hz_;
  const bool truncate_;
  const std::string& name_;
  std::optional<StreamResampler> resampler_;
  std::vector<float> sound_;
  int from_hz_ = 0;
  size_t most_ = 0, taken_ = 0;  // samples of the source
  size_t frame_ = 0, in_frame_ = 0;
  double squares_ = 0, loudest_db_ = -std::numeric_limits<double>::infinity();
};

Status Preparation::begin(int from_hz) {
  SYRINX_TRY(StreamResampler resampler, StreamResampler::create(from_hz, rate_hz_));
  resampler_.emplace(std::move(resampler));
  from_hz_ = from_hz;
  frame_ = frame_of(from_hz);
  most_ = truncate_ ? samples_of(kTruncateSeconds, from_hz) : std::numeric_limits<size_t>::max();
  return {};
}

// Samples beyond the kept ones are still decoded, so that a file that is damaged there is refused.
Status Preparation::add(std::span<const float> samples) {
  samples = samples.first(std::min(samples.size(), most_ - taken_));
  if (!std::all_of(samples.begin(), samples.end(), [](float sample) { return std::abs(sample) <= kLargestSample; }))
    return fail(Code::kDataLoss, "'{}' has samples beyond {}, where sound lies between -1 and 1; export it again",
                name_, kLargestSample);
  taken_ += samples.size();
  listen(samples);
  resampler_->push(samples, sound_);
  return {};
}

void Preparation::listen(std::span<const float> samples) {
  for (const float sample : samples) {
    squares_ += static_cast<double>(sample) * static_cast<double>(sample);
    if (++in_frame_ == frame_) end_frame();
  }
}

void Preparation::end_frame() {
  if (in_frame_ > 0) loudest_db_ = std::max(loudest_db_, level_db(squares_, in_frame_));
  in_frame_ = 0;
  squares_ = 0;
}

Result<std::vector<float>> Preparation::finish() {
  if (taken_ == 0) return fail(Code::kInvalidArgument, "'{}' contains no audio; a voice needs some seconds", name_);
  end_frame();
  if (loudest_db_ < kSilenceDb)
    return fail(Code::kInvalidArgument, "'{}' is silent: nothing in its {:.1f} s is louder than {:.0f} dB", name_,
                static_cast<double>(taken_) / from_hz_, kSilenceDb);
  resampler_->finish(sound_);
  std::vector<float> ended = end_on_pause(sound_, rate_hz_);
  if (ended.size() < samples_of(kMinRecordingSeconds + kPauseSeconds, rate_hz_))
    return fail(Code::kInvalidArgument,
                "'{}' has {:.2f} s of sound before silence, a voice needs {:.2f} s; 10 to 30 s "
                "are best",
                name_, std::max(0.0, static_cast<double>(ended.size()) / rate_hz_ - kPauseSeconds),
                kMinRecordingSeconds);
  return ended;
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
  const std::span<const float> sound = recording.samples;
  if (!truncate && sound.size() > samples_of(kMaxRecordingSeconds, recording.rate_hz))
    return fail(Code::kLimitExceeded, "'{}' has {:.0f} s of sound, at most {:.0f} s make a voice; 10 to 30 s are best",
                name, recording.seconds(), kMaxRecordingSeconds);
  Preparation preparation(rate_hz, truncate, name);
  SYRINX_TRY_VOID(preparation.begin(recording.rate_hz));
  for (size_t at = 0; at < sound.size(); at += kBlockSamples)
    SYRINX_TRY_VOID(preparation.add(sound.subspan(at, std::min(kBlockSamples, sound.size() - at))));
  return preparation.finish();
}

Result<std::vector<float>> read_voice_recording(std::span<const std::byte> file, int rate_hz, bool truncate,
                                                const std::string& name) {
  const SoundLimits limits = truncate ? SoundLimits{} : SoundLimits{.max_seconds = kMaxRecordingSeconds};
  Preparation preparation(rate_hz, truncate, name);
  const SoundSink sink{.begin = [&](int from_hz, std::optional<uint64_t>) { return preparation.begin(from_hz); },
                       .add = [&](std::span<const float> samples) { return preparation.add(samples); }};
  SYRINX_TRY_VOID(read_sound(file, name, limits, sink));
  return preparation.finish();
}

}  // namespace syrinx::pocket
