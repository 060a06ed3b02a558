#include "engine/families/hourglass/hourglass_recogniser.h"

#include <utility>

#include "engine/families/hourglass/hourglass_family.h"
#include "models/hourglass/duration.h"

namespace syrinx {
namespace {

// One segment from the first sample to the end or the next commit.
class HourglassStream final : public RecognitionStream {
 public:
  HourglassStream(std::shared_ptr<HourglassRecogniser> recogniser, TranscribeOptions options)
      : recogniser_(std::move(recogniser)), options_(std::move(options)) {}

  Status push(std::span<const float> samples, std::vector<RecognitionEvent>& /*events*/) override {
    heard_ += samples.size();
    return {};
  }
  Status finish(std::vector<RecognitionEvent>& events) override { return commit(events); }
  Status commit(std::vector<RecognitionEvent>& events) override {
    const int64_t came_ns = take_arrival();
    if (heard_ == 0) return {};
    SYRINX_TRY(TranscriptSegment segment, recogniser_->hear(std::exchange(heard_, 0), options_));
    const size_t stable = segment.text.size();
    events.push_back({.segment = segments_++,
                      .is_final = true,
                      .result = std::move(segment),
                      .stable_bytes = stable,
                      .latency_ms = static_cast<double>(system_clock().now_ns() - came_ns) * 1e-6});
    return {};
  }
  const std::string& language() const override { return language_; }

 private:
  const std::shared_ptr<HourglassRecogniser> recogniser_;
  const TranscribeOptions options_;
  const std::string language_;
  size_t heard_ = 0;
  uint64_t segments_ = 0;
};

}  // namespace

Result<std::shared_ptr<Recogniser>> HourglassRecogniser::load(RecogniserOptions options) {
  const Stopwatch watch;
  SYRINX_TRY(const MappedFile file, MappedFile::open(options.files.checkpoint));
  SYRINX_TRY(const float rate_hz, hourglass::read_rate(file));
  std::shared_ptr<HourglassRecogniser> recogniser(new HourglassRecogniser(rate_hz, std::move(options)));
  recogniser->load_ms_ = watch.elapsed_ms();
  return std::shared_ptr<Recogniser>(std::move(recogniser));
}

HourglassRecogniser::HourglassRecogniser(float rate_hz, RecogniserOptions options)
    : files_(std::move(options.files)),
      rate_hz_(rate_hz),
      compute_(options.compute != nullptr ? options.compute : Compute::shared()),
      queue_(compute_->scheduler()) {}

Result<TranscriptSegment> HourglassRecogniser::hear(size_t samples, const TranscribeOptions& options) {
  const StepQueue::Turn turn(queue_, kNeverDue, options.is_wanted);
  if (!turn.is_mine()) return fail(Code::kCancelled, "the recognition was cancelled");
  const std::string unit = options.knobs.text("unit").value_or("seconds");
  TranscriptSegment segment;
  segment.text = hourglass::spell_duration(samples, rate_hz_, unit);
  segment.confidence = 1;
  segment.end_s = static_cast<double>(samples) / kRecognitionRateHz;
  return segment;
}

Result<Transcript> HourglassRecogniser::transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                                   const Progress& progress) {
  SYRINX_TRY_VOID(check_stream(options));
  Transcript transcript{
      .language = {}, .audio_s = static_cast<double>(samples.size()) / kRecognitionRateHz, .segments = {}};
  SYRINX_TRY(TranscriptSegment segment, hear(samples.size(), options));
  transcript.segments.push_back(std::move(segment));
  size_t told = 0;
  tell_heard(options, transcript, told);
  if (progress && !progress(transcript.audio_s)) return fail(Code::kCancelled, "the recognition was cancelled");
  return transcript;
}

Result<std::unique_ptr<RecognitionStream>> HourglassRecogniser::start(const TranscribeOptions& options) {
  SYRINX_TRY_VOID(check_stream(options));
  return std::make_unique<HourglassStream>(shared_from_this(), options);
}

Status HourglassRecogniser::check_stream(const TranscribeOptions& options) const {
  return check_knobs(options.knobs, hourglass_family());
}

}  // namespace syrinx
