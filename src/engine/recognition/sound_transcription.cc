#include "engine/recognition/sound_transcription.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "audio/stream_resampler.h"

namespace syrinx {
namespace {

constexpr size_t kHop = kRecognitionRateHz / 100;
constexpr size_t kQuietHops = 30;

void move_by(TranscriptSegment& segment, double seconds) {
  const auto later = [=](double time_s) { return time_s + seconds; };
  map_times(segment, later, later);
}

double seconds_of(uint64_t samples) { return static_cast<double>(samples) / kRecognitionRateHz; }

class Stretches {
 public:
  Stretches(Recogniser& recogniser, const TranscribeOptions& options, const SoundProgress& progress,
            const StretchLimits& limits)
      : recogniser_(recogniser), options_(options), heard_(options.heard), progress_(progress) {
    longest_ = static_cast<size_t>(limits.longest_s * kRecognitionRateHz);
    search_ = static_cast<size_t>(limits.search_s * kRecognitionRateHz);
  }

  Status begin(int rate_hz, std::optional<uint64_t> frames) {
    SYRINX_TRY(resampler_, StreamResampler::create(rate_hz, kRecognitionRateHz));
    if (frames) total_s_ = static_cast<double>(*frames) / rate_hz;
    return {};
  }
  Status add(std::span<const float> samples) {
    if (options_.is_wanted && !options_.is_wanted()) return fail(Code::kCancelled, "stopped while it was read");
    resampler_->push(samples, waiting_);
    while (waiting_.size() > longest_) {
      const size_t cut = quietest(std::span(waiting_).first(longest_), longest_ - std::min(search_, longest_));
      SYRINX_TRY_VOID(transcribe(cut));
    }
    return {};
  }
  void warn(const std::string& sentence) { transcript_.warnings.push_back(sentence); }
  Result<Transcript> finish() && {
    resampler_->finish(waiting_);
    if (!waiting_.empty()) SYRINX_TRY_VOID(transcribe(waiting_.size()));
    transcript_.audio_s = seconds_of(done_);
    return std::move(transcript_);
  }

 private:
  Status transcribe(size_t samples) {
    const double before_s = seconds_of(done_);
    const auto progress = [&](double done_s) { return !progress_ || progress_(before_s + done_s, total_s_); };
    if (!progress(0)) return fail(Code::kCancelled, "stopped while transcribing");
    if (heard_)
      options_.heard = [&](TranscriptSegment segment) {
        move_by(segment, before_s);
        heard_(segment);
      };
    SYRINX_TRY(Transcript part, recogniser_.transcribe(std::span(waiting_).first(samples), options_, progress));
    for (TranscriptSegment& segment : part.segments) {
      move_by(segment, before_s);
      transcript_.segments.push_back(std::move(segment));
    }
    if (transcript_.language.empty()) transcript_.language = part.language;
    options_.language = transcript_.language;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(samples));
    done_ += samples;
    return {};
  }

  Recogniser& recogniser_;
  TranscribeOptions options_;
  const std::function<void(const TranscriptSegment&)> heard_;
  const SoundProgress& progress_;
  size_t longest_ = 0, search_ = 0;
  std::optional<StreamResampler> resampler_;
  std::optional<double> total_s_;
  std::vector<float> waiting_;
  uint64_t done_ = 0;  // samples
  Transcript transcript_;
};

}  // namespace

size_t quietest(std::span<const float> sound, size_t begin) {
  if (sound.size() < begin + kQuietHops * kHop) return sound.size();
  std::vector<double> energy((sound.size() - begin) / kHop);
  for (size_t hop = 0; hop < energy.size(); ++hop)
    for (const float value : sound.subspan(begin + hop * kHop, kHop)) energy[hop] += static_cast<double>(value) * value;
  double sum = 0;
  for (size_t hop = 0; hop < kQuietHops; ++hop) sum += energy[hop];
  double least = sum;
  size_t best = 0;
  for (size_t hop = kQuietHops; hop < energy.size(); ++hop) {
    sum += energy[hop] - energy[hop - kQuietHops];
    if (sum >= least) continue;
    least = sum;
    best = hop + 1 - kQuietHops;
  }
  return begin + (best + kQuietHops / 2) * kHop;
}

Result<Transcript> transcribe_sound(Recogniser& recogniser, const SoundSource& source, const TranscribeOptions& options,
                                    const SoundProgress& progress, const StretchLimits& limits) {
  Stretches stretches(recogniser, options, progress, limits);
  const SoundSink sink{
      .begin = [&](int rate_hz, std::optional<uint64_t> frames) { return stretches.begin(rate_hz, frames); },
      .add = [&](std::span<const float> samples) { return stretches.add(samples); },
      .warn = [&](const std::string& sentence) { stretches.warn(sentence); }};
  SYRINX_TRY_VOID(source(sink));
  return std::move(stretches).finish();
}

Result<Transcript> transcribe_channels(Recogniser& recogniser, const ChannelSource& source,
                                       const TranscribeOptions& options, const SoundProgress& progress) {
  Transcript all;
  int channels = 1;
  for (int channel = 0; channel < channels; ++channel) {
    const SoundSource counted = [&](const SoundSink& sink) {
      SoundSink counting = sink;
      counting.channels = [&](int count) { channels = count; };
      return source(channel)(counting);
    };
    const SoundProgress shared = [&](double done_s, std::optional<double> total_s) {
      if (!progress) return true;
      const double before_s = channel * total_s.value_or(all.audio_s);
      return progress(before_s + done_s, total_s ? std::optional(channels * *total_s) : std::nullopt);
    };
    TranscribeOptions labelling = options;
    if (options.heard)
      labelling.heard = [&](TranscriptSegment segment) {
        segment.channel = channel;
        options.heard(segment);
      };
    SYRINX_TRY(Transcript one, transcribe_sound(recogniser, counted, labelling, shared));
    for (TranscriptSegment& segment : one.segments) {
      segment.channel = channel;
      all.segments.push_back(std::move(segment));
    }
    all.audio_s = std::max(all.audio_s, one.audio_s);
    if (all.language.empty()) all.language = one.language;
    if (channel == 0) all.warnings = std::move(one.warnings);
  }
  std::ranges::stable_sort(all.segments, {}, &TranscriptSegment::start_s);
  for (size_t i = 1; i < all.segments.size(); ++i)
    all.segments[i].spaced |= all.segments[i].channel != all.segments[i - 1].channel;
  return all;
}

}  // namespace syrinx
