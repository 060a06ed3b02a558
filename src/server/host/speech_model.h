// The model that speaks, ready for requests: its engine, what it is called, and the voices that may be asked for.
// Immutable once loaded but for the voices that clients upload; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/speech/speech_engine.h"
#include "engine/speech/speech_family.h"
#include "server/host/voice_shelf.h"
#include "server/http/http_message.h"
#include "server/settings/model_id.h"
#include "server/settings/settings.h"

namespace syrinx::server {

struct ListedVoice {
  std::string id;
  std::string language = {};  // "en-us"; empty: not known
  const char* kind = "builtin";
  std::optional<int64_t> created_s = {};  // of an uploaded one, since 1970
};

class SpeechModel {
 public:
  // Loads the model of the settings, adds their voices, speaks a sentence with the default voice, and has the engine
  // load what the voices of its other languages need, so that the first request finds everything warm.  The engine's
  // errors.
  static Result<std::shared_ptr<const SpeechModel>> load(const Settings& settings);
  // The same of files whose engine is there already.
  static Result<std::shared_ptr<const SpeechModel>> of(const Settings& settings, SpeechFiles files,
                                                       std::shared_ptr<SpeechEngine> engine);
  // The checks of load(), without loading: the files exist, `precision` is one of the model's, `voices` are voices, and
  // the voices named by `voice` and `voice_names` exist.
  static Status check(const Settings& settings);

  SpeechEngine& engine() const { return *engine_; }
  StepFigures steps() const { return engine_->steps().since(warm_up_steps_); }  // the engine's since it is warm
  // The steps of the warm-up, and the seconds of speech that they made.
  const StepFigures& warm_up_steps() const { return warm_up_steps_; }
  double warm_up_audio_s() const { return warm_up_audio_s_; }
  uint64_t memory_bytes() const { return memory_bytes_; }  // by so much the process grew in load(); 0: not measured
  const SpeechFamily& family() const { return *files_.family; }
  const std::string& id() const { return called_.id(); }
  std::vector<ListedVoice> voices() const;  // uploaded ones last
  std::optional<ListedVoice> find_listed(std::string_view id) const;
  // Whether a new voice cannot be called so: one is, whatever the case of its letters, or the name means one.
  bool is_taken(std::string_view name) const;
  bool is_settled(std::string_view id) const;    // the settings name it
  VoiceShelf& shelf() const { return *shelf_; }  // closed where clients may upload none
  // Whether a request may call the model so: by its id, or by a name of OpenAI's, with a date or without.
  bool is_called(std::string_view model) const;
  // Whether a sentence of the engine's names one of the model's files.
  bool names_its_files(std::string_view sentence) const;
  // The voice for the engine.  A request opens no files: it chooses among the listed voices, blends of them, the
  // operator's `voice_names` and OpenAI's names, which all speak.  404 for another name; 400 for a voice that exists
  // and is not listed, as no text can be read for it.
  tl::expected<std::string, HttpError> find_voice(const std::string& requested) const;
  // The same for a text of that language (empty: any), whose voice speaks where none is named.  400 where the named
  // one, or none, speaks it.  Where every voice speaks all languages, the one that would speak any.
  tl::expected<std::string, HttpError> find_voice(const std::string& requested, const std::string& language) const;
  // The first listed voice of that language, "de" or "de-DE" in any case: the default one if it is one; empty: there
  // is none.
  std::string voice_of_language(std::string_view language) const;
  // Those in which it speaks texts, "en-us", without what is not known of its voices.
  std::vector<std::string> languages() const;
  // Every voice speaks whichever of them the option kLanguageKnob asks for.
  bool chooses_language() const { return !spoken_languages_.empty(); }
  // Options of its family that this model does not take.
  std::span<const std::string_view> lacking() const { return lacking_; }
  // Fields of a request that this model ignores while others heed them.
  std::vector<std::string> unheeded_fields() const;

 private:
  SpeechModel(const Settings& settings, SpeechFiles files, std::string shelf_folder);
  static Result<std::shared_ptr<SpeechModel>> make(const Settings& settings, SpeechFiles files,
                                                   const std::string& data_folder);
  Status name_voices(const Settings& settings);
  bool is_listed(std::string_view id) const { return find_listed(id).has_value(); }
  bool is_own(std::string_view id) const;                                   // not an uploaded one
  bool is_added(const Settings& settings, const std::string& voice) const;  // by them or by clients
  ListedVoice listed(const UploadedVoice& voice) const;
  bool is_blend(std::string_view text) const;
  std::vector<std::string> parts_of(std::string_view voice) const;
  // An error message if a voice in the name or blend speaks a language in which no text can be read; else empty.
  std::string why_unread(std::string_view text) const;
  const std::string& default_voice() const {
    return default_voice_.empty() ? engine_->default_voice() : default_voice_;
  }
  std::string language_of(const std::string& voice) const;  // that find_voice() has found; empty: not known
  Status take_engine(const Settings& settings, std::shared_ptr<SpeechEngine> engine);
  Status warm_up();
  void read_for_all_languages() const;

  const SpeechFiles files_;
  const ModelNames called_;
  std::string default_voice_;  // empty: the engine's
  std::shared_ptr<SpeechEngine> engine_;
  StepFigures warm_up_steps_;  // which nobody heard
  double warm_up_audio_s_ = 0;
  uint64_t memory_bytes_ = 0;
  std::vector<std::string> spoken_languages_;
  std::vector<std::string_view> lacking_;
  std::vector<ListedVoice> voices_;                         // all but the uploaded ones
  std::map<std::string, std::string, std::less<>> unread_;  // those that are not listed, to their languages
  const std::unique_ptr<VoiceShelf> shelf_;
  std::map<std::string, std::string, std::less<>> names_;  // to an empty one: the default
};

}  // namespace syrinx::server
