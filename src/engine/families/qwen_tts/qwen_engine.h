// Qwen3-TTS with its voices: the speakers of CustomVoice, recordings that Base clones when they are first asked for, or
// what instructions describe to VoiceDesign.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "engine/families/qwen_tts/frame_pool.h"
#include "engine/families/qwen_tts/qwen_cloner.h"
#include "engine/families/qwen_tts/qwen_model.h"
#include "engine/families/qwen_tts/qwen_speaker.h"
#include "engine/families/qwen_tts/qwen_voices.h"
#include "engine/schedule/compute.h"
#include "engine/speech/speech_engine.h"
#include "nn/runner.h"

namespace syrinx {

class QwenEngine final : public SpeechEngine, public std::enable_shared_from_this<QwenEngine> {
 public:
  static constexpr Precision kDefaultPrecision = Precision::kInt8;
  static constexpr size_t kMaxSessions = 32;  // at once; one more is kUnavailable
  // Limit of the cloned voices that were added; those read from files take what they leave, and half as much whatever
  // is added.  One that goes on behind its recording takes 6 MB, else some KB.
  static constexpr size_t kMaxVoiceBytes = size_t{256} << 20;

  // options.threads has been chosen.  options.first_voice is made ready too.
  static Result<std::shared_ptr<SpeechEngine>> load(SpeechEngineOptions options);

  Result<std::unique_ptr<SpeechSession>> start(const SpeakOptions& options) override;
  // `content` is an exported voice, or a recording, whose words are not known.  kLimitExceeded where the added voices
  // would outgrow the limit; kUnsupported of another kind than base.
  Status add_voice(const std::string& name, std::span<const std::byte> content) override;
  bool clones() const override { return cloner_ != nullptr; }
  void remove_voice(const std::string& name) override;
  Result<std::string> export_voice(const std::string& voice) override;

  const std::string& name() const override { return files_.name; }
  int rate_hz() const override { return QwenModel::kSampleRateHz; }
  Precision precision() const override { return model_->weights()->precision; }
  int threads() const override { return team_.size(); }
  double load_ms() const override { return load_ms_; }
  const std::string& default_voice() const override { return default_voice_; }
  StepFigures steps() const override { return queue_.steps(); }
  size_t waiting() const override { return pool_->waiting(); }
  // Between sessions.
  const qwen_tts::FramePool::Times& times() const { return pool_->times(); }

 private:
  using Voice = std::shared_ptr<const QwenVoice>;

  QwenEngine(std::shared_ptr<const QwenModel> model, SpeechEngineOptions options);
  Status prepare(ThreadTeam& packers);
  Result<Voice> voice(const std::string& name);
  Result<Voice> marked_voice(const std::string& name);
  Result<Voice> cloned_voice(const std::string& name);
  Result<Voice> read_voice(const QwenRecording& recording);
  void keep(const std::string& name, const Voice& voice);
  size_t room_of_files() const;  // in bytes; by voices_mutex_

  const SpeechFiles files_;
  const std::shared_ptr<const QwenModel> model_;
  std::string default_voice_;
  double load_ms_ = 0;

  const std::shared_ptr<Compute> compute_;
  StepQueue queue_;
  ThreadTeam team_;
  nn::Runner runner_;
  std::unique_ptr<qwen_tts::FramePool> pool_;  // all use of the team goes through this
  std::unique_ptr<QwenCloner> cloner_;         // of the kind base

  std::mutex voices_mutex_;
  std::map<std::string, Voice> voices_, added_voices_;  // read from files; by add_voice()
};

}  // namespace syrinx
