// Pocket TTS with its voices: exported ones, and recordings that are cloned when they are first asked for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/thread_team.h"
#include "engine/families/pocket_tts/pocket_voices.h"
#include "engine/families/pocket_tts/stream_pool.h"
#include "engine/schedule/compute.h"
#include "engine/speech/speech_engine.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/voice_file.h"
#include "models/pocket_tts/voice_state.h"
#include "nn/runner.h"

namespace syrinx {

class PocketEngine final : public SpeechEngine, public std::enable_shared_from_this<PocketEngine> {
 public:
  // Of the voices that were added.  Those read from files take what they leave, and half as much whatever is added, so
  // that nobody who adds voices has others' read, or cloned, anew for each text.  An exported voice of 10 s takes 6 MB,
  // with 24 layers 24 MB.
  static constexpr size_t kMaxVoiceBytes = size_t{256} << 20;
  static constexpr Precision kDefaultPrecision = Precision::kInt8;
  static constexpr size_t kMaxSessions = pocket::kMaxStreams;  // at once; one more is kUnavailable

  // options.threads has been chosen.  options.first_voice, or else the default voice unless it is a recording, is made
  // ready too.
  static Result<std::shared_ptr<SpeechEngine>> load(SpeechEngineOptions options,
                                                    size_t max_voice_bytes = kMaxVoiceBytes);

  Result<std::unique_ptr<SpeechSession>> start(const SpeakOptions& options) override;
  // `content` is an exported voice, or a recording.  kLimitExceeded where the added voices would outgrow the limit.
  Status add_voice(const std::string& name, std::span<const std::byte> content) override;
  bool clones() const override { return model_->has_encoder(); }
  void remove_voice(const std::string& name) override;
  Result<std::string> export_voice(const std::string& voice) override;

  const std::string& name() const override { return files_.name; }
  int rate_hz() const override { return pocket::kSampleRateHz; }
  Precision precision() const override { return model_->flow_lm()->precision; }
  int threads() const override { return team_.size(); }
  double load_ms() const override { return load_ms_; }
  const std::string& default_voice() const override { return default_voice_; }
  StepFigures steps() const override { return pool_->steps(); }
  size_t waiting() const override { return pool_->waiting(); }

 private:
  PocketEngine(std::shared_ptr<const pocket::Model> model, SpeechEngineOptions options, size_t max_voice_bytes);
  void prepare_default_voice();
  pocket::VoiceState added_voice(const std::string& name);
  Result<pocket::VoiceState> voice(const std::string& name);
  Result<pocket::VoiceState> marked_voice(const std::string& name);
  Result<pocket::VoiceState> read_voice(const PocketVoiceFile& file, bool truncate);
  Result<pocket::VoiceState> make_voice(const PocketVoiceContent& source, int64_t due_ns);
  void keep(const std::string& name, const pocket::VoiceState& voice);
  size_t room_of_files() const;  // in bytes; by voices_mutex_

  const size_t max_voice_bytes_;
  const SpeechFiles files_;
  const std::shared_ptr<const pocket::Model> model_;
  std::string default_voice_;
  double load_ms_ = 0;

  const std::shared_ptr<Compute> compute_;
  StepQueue queue_;
  ThreadTeam team_;
  nn::Runner runner_;
  std::unique_ptr<pocket::StreamPool> pool_;  // all use of the team goes through this

  std::mutex voices_mutex_;
  std::map<std::string, pocket::VoiceState> voices_, added_voices_;  // read from files; by add_voice()
};

}  // namespace syrinx
