// Hears the duration of recordings and streams, in turns of the process's scheduler.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/recognition/recogniser.h"
#include "engine/schedule/compute.h"

namespace syrinx {

class HourglassRecogniser final : public Recogniser, public std::enable_shared_from_this<HourglassRecogniser> {
 public:
  static Result<std::shared_ptr<Recogniser>> load(RecogniserOptions options);

  Result<Transcript> transcribe(std::span<const float> samples, const TranscribeOptions& options,
                                const Progress& progress) override;
  Result<std::unique_ptr<RecognitionStream>> start(const TranscribeOptions& options) override;
  Status check_stream(const TranscribeOptions& options) const override;
  bool hears_streams_as_recordings() const override { return true; }

  const std::string& name() const override { return files_.name; }
  Precision precision() const override { return Precision::kF32; }
  int threads() const override { return 1; }
  std::vector<std::string> languages() const override { return {}; }
  std::shared_ptr<const silero::SileroVad> voice_activity() const override { return nullptr; }
  Frames frames_of(size_t samples) const override { return {.features = samples / 160, .encoded = samples / 160}; }
  double load_ms() const override { return load_ms_; }
  double warm_up_ms() const override { return 0; }
  StepFigures steps() const override { return queue_.steps(); }
  size_t waiting() const override { return queue_.waiting(); }

  // kCancelled where `options.is_wanted` says no.
  Result<TranscriptSegment> hear(size_t samples, const TranscribeOptions& options);

 private:
  HourglassRecogniser(float rate_hz, RecogniserOptions options);

  const RecognitionFiles files_;
  const float rate_hz_;
  const std::shared_ptr<Compute> compute_;
  StepQueue queue_;
  double load_ms_ = 0;
};

}  // namespace syrinx
