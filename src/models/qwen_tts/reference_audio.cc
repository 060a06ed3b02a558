#include "models/qwen_tts/reference_audio.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "audio/decode/sound_file.h"
#include "audio/loudest_sample.h"
#include "audio/stream_resampler.h"

namespace syrinx::qwen_tts {
namespace {

constexpr double kFrameSeconds = 0.02, kMarginSeconds = 0.04;
constexpr double kTrimDb = 40;      // below loudness()
constexpr double kSilenceDb = -60;  // loudness() of silence; a whisper close to the microphone has about -40
constexpr size_t kClickFrames = 2;  // that 20 ms touch
constexpr size_t kBlockSamples = size_t{1} << 16;

size_t samples_of(double seconds, int rate_hz) { return static_cast<size_t>(seconds * rate_hz); }
size_t frame_of(int rate_hz) { return std::max<size_t>(1, samples_of(kFrameSeconds, rate_hz)); }

// One a frame, about its mean, as a constant is not heard.  The last one may be shorter, and counts as filled up with
// silence.
std::vector<double> levels_db(std::span<const float> sound, int rate_hz) {
  const size_t frame = frame_of(rate_hz);
  std::vector<double> levels;
  for (size_t at = 0; at < sound.size(); at += frame) {
    const std::span<const float> part = sound.subspan(at, std::min(frame, sound.size() - at));
    const double mean = std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(part.size());
    double squares = 0;
    for (const float sample : part) squares += (sample - mean) * (sample - mean);
    levels.push_back(20 * std::log10(std::sqrt(squares / static_cast<double>(frame)) + 1e-12));
  }
  return levels;
}

// The loudest frame without a click.
double loudness_db(std::vector<double> levels) {
  const auto nth = levels.begin() + static_cast<ptrdiff_t>(std::min(kClickFrames, levels.size() - 1));
  std::nth_element(levels.begin(), nth, levels.end(), std::greater<>());
  return *nth;
}

Status check(const ReferenceOptions& options) {
  if (options.silence_s >= 0 && options.silence_s <= kMaxReferenceSilence) return {};
  return fail(Code::kInvalidArgument, "{} s of silence behind a reference; it must be from 0 to {} s",
              options.silence_s, kMaxReferenceSilence);
}

// Takes a sound block by block and holds it at the model's rate.
class Preparation {
 public:
  Preparation(int rate_hz, const ReferenceOptions& options, const std::string& name)
      : rate_hz_(rate_hz), options_(options), name_(name) {}

  Status begin(int from_hz) {
    SYRINX_TRY(StreamResampler resampler, StreamResampler::create(from_hz, rate_hz_));
    resampler_.emplace(std::move(resampler));
    return {};
  }
  Status add(std::span<const float> samples) {
    if (!std::all_of(samples.begin(), samples.end(), [](float sample) { return std::abs(sample) <= kLoudestSample; }))
      return fail(Code::kDataLoss,
                  "'{}' has samples that are no numbers, or beyond {}, where sound lies between -1 and "
                  "1; export it again",
                  name_, kLoudestSample);
    resampler_->push(samples, sound_);
    return {};
  }
  Result<ReferenceAudio> finish();

 private:
  const int rate_hz_;
  const ReferenceOptions& options_;
  const std::string& name_;
  std::optional<StreamResampler> resampler_;
  std::vector<float> sound_;
};

Result<ReferenceAudio> Preparation::finish() {
  if (resampler_) resampler_->finish(sound_);
  if (sound_.empty())
    return fail(Code::kInvalidArgument, "'{}' contains no audio; a voice needs some seconds of speech", name_);
  if (loudness_db(levels_db(sound_, rate_hz_)) < kSilenceDb)
    return fail(Code::kInvalidArgument, "'{}' is silent: nothing but clicks in its {:.1f} s is louder than {:.0f} dB",
                name_, static_cast<double>(sound_.size()) / rate_hz_, kSilenceDb);
  const std::span<const float> kept =
      options_.trim ? without_silence(sound_, rate_hz_) : std::span<const float>(sound_);
  if (kept.size() < samples_of(kMinReferenceSeconds, rate_hz_))
    return fail(Code::kInvalidArgument, "'{}' has {:.2f} s of sound, a voice needs {:.1f} s; 3 to 15 s are best", name_,
                static_cast<double>(kept.size()) / rate_hz_, kMinReferenceSeconds);
  const size_t silence = samples_of(options_.silence_s, rate_hz_);
  ReferenceAudio reference{.samples = {}, .sound_samples = kept.size()};
  reference.samples.reserve(kept.size() + silence);
  reference.samples.assign(kept.begin(), kept.end());
  reference.samples.resize(kept.size() + silence, 0.0f);
  return reference;
}

}  // namespace

std::span<const float> without_silence(std::span<const float> sound, int rate_hz) {
  const std::vector<double> levels = levels_db(sound, rate_hz);
  if (levels.empty()) return sound;
  const double floor = loudness_db(levels) - kTrimDb;
  const auto loud = [&](double level) { return level > floor; };
  const auto first = std::find_if(levels.begin(), levels.end(), loud);
  const auto last = std::find_if(levels.rbegin(), levels.rend(), loud).base();  // behind it
  const size_t frame = frame_of(rate_hz), margin = samples_of(kMarginSeconds, rate_hz);
  const size_t begin = static_cast<size_t>(first - levels.begin()) * frame;
  const size_t end = std::min(static_cast<size_t>(last - levels.begin()) * frame + margin, sound.size());
  const size_t from = begin - std::min(begin, margin);
  return sound.subspan(from, end - from);
}

Result<ReferenceAudio> prepare_reference(const Recording& recording, int rate_hz, const ReferenceOptions& options,
                                         const std::string& name) {
  SYRINX_TRY_VOID(check(options));
  Preparation preparation(rate_hz, options, name);
  SYRINX_TRY_VOID(preparation.begin(recording.rate_hz));
  const std::span<const float> sound = recording.samples;
  if (sound.size() > samples_of(kMaxReferenceSeconds, recording.rate_hz))
    return fail(Code::kLimitExceeded, "'{}' has {:.1f} s of sound, at most {:.0f} s make a voice; 3 to 15 s are best",
                name, recording.seconds(), kMaxReferenceSeconds);
  for (size_t at = 0; at < sound.size(); at += kBlockSamples)
    SYRINX_TRY_VOID(preparation.add(sound.subspan(at, std::min(kBlockSamples, sound.size() - at))));
  return preparation.finish();
}

Result<ReferenceAudio> read_reference(std::span<const std::byte> file, int rate_hz, const ReferenceOptions& options,
                                      const std::string& name) {
  SYRINX_TRY_VOID(check(options));
  Preparation preparation(rate_hz, options, name);
  const SoundSink sink{.begin = [&](int from_hz, std::optional<uint64_t>) { return preparation.begin(from_hz); },
                       .add = [&](std::span<const float> samples) { return preparation.add(samples); }};
  SYRINX_TRY_VOID(read_sound(file, name, {.max_seconds = kMaxReferenceSeconds}, sink));
  return preparation.finish();
}

}  // namespace syrinx::qwen_tts
