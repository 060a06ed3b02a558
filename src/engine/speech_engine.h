// A loaded voice model with its front end: makes sessions.  Thread-safe: sessions of several threads take turns, piece
// by piece, at the one team of threads and its scratch memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "engine/speech_files.h"
#include "engine/speech_session.h"
#include "models/kokoro/model.h"
#include "models/kokoro/voice.h"

namespace syrinx {

struct SpeechEngineOptions {
  SpeechFiles files;
  std::optional<MappedFile> checkpoint = {};  // used instead of files.checkpoint
  kokoro::Precision precision = kokoro::Precision::kInt8;
  int threads = 0;                 // 1 to 64; 0: default_threads()
  std::string dictionary = {};     // the user's own words; empty: none
  std::string cache_folder = {};   // for packed weights and the compiled lexicon; empty: none is kept
  std::string first_voice = {};    // its front end is loaded at once, others when they are first used
  bool first_is_phonemes = false;  // no front end is needed before text comes
};

class SpeechEngine : public std::enable_shared_from_this<SpeechEngine> {
 public:
  // The front end is read by a second thread while the model loads.
  static Result<std::shared_ptr<SpeechEngine>> load(SpeechEngineOptions options);

  // kNotFound or kInvalidArgument for the voice, the speed, a language without a front end.
  Result<std::unique_ptr<SpeechSession>> start(const SpeakOptions& options);
  // A voice from the content of its file, under a name of letters, digits, '_' and '-'; replaces one of that name.
  Status add_voice(const std::string& name, std::span<const std::byte> content);
  Result<std::vector<kokoro::VoiceInfo>> voices() const { return kokoro::list_voices(files_.voices); }

  const std::string& name() const { return files_.name; }
  kokoro::Precision precision() const { return model_->precision(); }
  int threads() const { return team_.size(); }
  double load_ms() const { return load_ms_; }

 private:
  class Maker;
  SpeechEngine(std::shared_ptr<const kokoro::Model> model, SpeechEngineOptions options);
  Result<std::shared_ptr<const kokoro::Voice>> voice(const std::string& name);
  Result<std::shared_ptr<const g2p::EnglishG2p>> front_end(bool british);

  const SpeechFiles files_;
  const std::string dictionary_;
  const std::string cache_folder_;
  const std::shared_ptr<const kokoro::Model> model_;
  double load_ms_ = 0;

  std::mutex step_mutex_;  // one piece at a time
  ThreadTeam team_;
  kokoro::Synthesizer synthesizer_;

  std::mutex parts_mutex_;
  using VoiceMap = std::map<std::string, std::shared_ptr<const kokoro::Voice>>;
  VoiceMap voices_;                                       // read from files, at most kMaxKeptVoices
  VoiceMap added_voices_;                                 // by add_voice()
  std::shared_ptr<const g2p::EnglishG2p> front_ends_[2];  // American, British
};

// The measured default: as many threads as this process may use cores, up to eight.
int default_threads();

}  // namespace syrinx
