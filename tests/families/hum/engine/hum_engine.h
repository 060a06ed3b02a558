// Hums texts, sentence by sentence, in turns of the process's scheduler.
#pragma once

#include <memory>
#include <string>

#include "engine/schedule/compute.h"
#include "engine/speech/speech_engine.h"
#include "models/hum/voice.h"

namespace syrinx {

class HumEngine final : public SpeechEngine, public std::enable_shared_from_this<HumEngine> {
 public:
  static Result<std::shared_ptr<SpeechEngine>> load(SpeechEngineOptions options);

  Result<std::unique_ptr<SpeechSession>> start(const SpeakOptions& options) override;
  Status add_voice(const std::string& name, std::span<const std::byte> content) override;
  bool clones() const override { return false; }
  void remove_voice(const std::string& /*name*/) override {}
  Result<std::string> export_voice(const std::string& voice) override;

  const std::string& name() const override { return files_.name; }
  int rate_hz() const override { return hum::kSampleRateHz; }
  Precision precision() const override { return Precision::kF32; }
  int threads() const override { return 1; }
  double load_ms() const override { return load_ms_; }
  const std::string& default_voice() const override { return voices_.begin()->first; }
  StepFigures steps() const override { return queue_.steps(); }
  size_t waiting() const override { return queue_.waiting(); }

  // Null where there is none of that name; empty: the default.
  const hum::Voice* find_voice(const std::string& name) const;
  StepQueue& queue() { return queue_; }

 private:
  HumEngine(hum::Voices voices, SpeechEngineOptions options);

  const SpeechFiles files_;
  const hum::Voices voices_;
  const std::shared_ptr<Compute> compute_;
  StepQueue queue_;
  double load_ms_ = 0;
};

}  // namespace syrinx
