// Kokoro with its English front end.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/thread_team.h"
#include "engine/families/kokoro/lexicon_files.h"
#include "engine/schedule/compute.h"
#include "engine/speech/speech_engine.h"
#include "models/g2p/english.h"
#include "models/kokoro/model.h"
#include "models/kokoro/voice.h"

namespace syrinx {

// Whether texts are read for a voice of that name: the front end is English, and a voice of another language speaks
// what it is given as phonemes alone.
bool reads_texts_for(const kokoro::VoiceInfo& voice);

class KokoroEngine final : public SpeechEngine, public std::enable_shared_from_this<KokoroEngine> {
 public:
  // kUnsupported for one that it is not computed in.
  static Result<kokoro::Precision> precision_of(std::optional<Precision> precision);
  // kNotFound: there is nothing that reads text.
  static Status check_lexicon(const SpeechFiles& files);
  // Voices of other languages than English can be given phonemes only: kUnsupported.
  static Status check_language(const std::string& voice);
  // A text may come from anybody: a mark of it chooses among the voices by name, and opens no file.
  static Status check_mark(const std::string& voice);
  // The front end is read by a second thread while the model loads.  options.threads has been chosen.
  static Result<std::shared_ptr<SpeechEngine>> load(SpeechEngineOptions options);

  Result<std::unique_ptr<SpeechSession>> start(const SpeakOptions& options) override;
  Result<std::unique_ptr<TextReading>> read(const SpeakOptions& options) override;
  Status add_voice(const std::string& name, std::span<const std::byte> content) override;
  bool clones() const override { return false; }
  void remove_voice(const std::string& name) override;
  Result<std::string> export_voice(const std::string& voice) override;

  const std::string& name() const override { return files_.name; }
  int rate_hz() const override { return kokoro::kSampleRateHz; }
  Precision precision() const override;
  int threads() const override { return team_.size(); }
  double load_ms() const override { return load_ms_; }
  const std::string& default_voice() const override;
  StepFigures steps() const override { return queue_.steps(); }
  size_t waiting() const override { return pieces_.waiting() + queue_.waiting(); }

  StepQueue& queue() { return queue_; }  // in whose turns nothing else runs on the team

 private:
  class Maker;
  // What a session reads and speaks with.
  struct Chosen {
    std::shared_ptr<const kokoro::Voice> voice;
    std::shared_ptr<const g2p::EnglishG2p> front_end;  // null when the input is phonemes
  };
  KokoroEngine(std::shared_ptr<const kokoro::Model> model, SpeechEngineOptions options,
               std::unique_ptr<FrontEnds> front_ends);
  Result<Chosen> choose(const std::string& voice, bool phonemes);
  Result<std::shared_ptr<const kokoro::Voice>> voice(const std::string& name);

  const SpeechFiles files_;
  const std::shared_ptr<const kokoro::Model> model_;
  double load_ms_ = 0;

  Scheduler piece_line_;
  StepQueue pieces_{piece_line_};  // for the synthesizer, which makes one piece at a time; taken before the team's
  const std::shared_ptr<Compute> compute_;
  StepQueue queue_;
  ThreadTeam team_;
  kokoro::Synthesizer synthesizer_;

  std::mutex parts_mutex_;
  using VoiceMap = std::map<std::string, std::shared_ptr<const kokoro::Voice>>;
  VoiceMap voices_;        // read from files, at most kMaxKeptVoices
  VoiceMap added_voices_;  // by add_voice()
  const std::unique_ptr<FrontEnds> front_ends_;
};

}  // namespace syrinx
