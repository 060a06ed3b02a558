// A loaded voice model: makes sessions.  Thread-safe: sessions of several threads take turns at the one team of threads
// and its scratch memory, chunk by chunk (speech_session.h); the one whose listener runs out of sound first goes first.
// Each family of models has an engine of its own behind this interface, loaded by engine/families/families.h.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/mapped_file.h"
#include "base/result.h"
#include "base/step_counts.h"
#include "engine/speech/speech_files.h"
#include "engine/speech/speech_session.h"
#include "engine/speech/text_reader.h"
#include "tensor/precision.h"

namespace syrinx {

class Compute;

struct SpeechEngineOptions {
  SpeechFiles files;
  std::optional<MappedFile> checkpoint = {};  // used instead of files.checkpoint; Kokoro alone
  std::optional<Precision> precision = {};    // absent: the family's default
  int threads = 0;                            // 1 to 64; 0: default_threads()
  std::string cache_folder = {};              // for packed weights and the compiled lexicon; empty: none is kept
  std::string first_voice = {};               // what it needs is loaded at once, others' when they are first used
  std::shared_ptr<Compute> compute = {};      // whose team and scheduler it uses; null: the process's

  // For families that have the options of these names, and `phonemes`.
  std::string dictionary = {};     // the user's own words; empty: none
  bool first_is_phonemes = false;  // no front end is needed before text comes
};

class SpeechEngine {
 public:
  virtual ~SpeechEngine() = default;

  // kNotFound or kInvalidArgument for the voice and for numbers out of range; kUnsupported for options that this family
  // does not heed, or a language without a front end.
  virtual Result<std::unique_ptr<SpeechSession>> start(const SpeakOptions& options) = 0;
  // How its front end reads a text; the errors of TextReader::start(), and kUnsupported where it has none.
  virtual Result<std::unique_ptr<TextReading>> read(const SpeakOptions& options);
  // A voice from the content of its file, under a name of letters, digits, '_' and '-'; replaces one of that name.
  virtual Status add_voice(const std::string& name, std::span<const std::byte> content) = 0;
  virtual bool clones() const = 0;  // whether add_voice() makes voices of recordings
  // What add_voice() has added under that name is there no more; sessions that speak with it go on.  Nothing where
  // there is none of that name.
  virtual void remove_voice(const std::string& name) = 0;
  // The content of a file that holds the voice (a name, or a path of a recording) for this model, as its maker's
  // programs read it.  kUnsupported: Kokoro's voices are files already.
  virtual Result<std::string> export_voice(const std::string& voice) = 0;

  virtual const std::string& name() const = 0;
  virtual int rate_hz() const = 0;  // of its sessions
  virtual Precision precision() const = 0;
  virtual int threads() const = 0;
  virtual double load_ms() const = 0;
  // The voice that is taken where none is given; empty when there is none to choose.
  virtual const std::string& default_voice() const = 0;
  // The steps since it was loaded, and how many wait for theirs at this moment.  Any thread.
  virtual StepFigures steps() const = 0;
  virtual size_t waiting() const = 0;
};

// Whether `name` is made of letters, digits, '_' and '-'; kInvalidArgument otherwise.
Status check_voice_name(const std::string& name);
// The same for a name in a mark of the text (marked_text.h).
Status check_marked_voice(const std::string& name);

}  // namespace syrinx
