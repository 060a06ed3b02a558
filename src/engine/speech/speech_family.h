// A family of speaking models as the rest of the program knows it.  Each defines its own in engine/families/NAME; the
// table in engine/families/families.def lists them, one a line.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/file_description.h"
#include "engine/knobs.h"
#include "engine/model_place.h"
#include "engine/speech/speech_engine.h"
#include "engine/speech/speech_files.h"
#include "tensor/precision.h"

namespace syrinx {

// A voice as its file's name describes it.
struct VoiceEntry {
  std::string name;
  std::string language = {};       // "American English"; empty: the family's voices have no languages of their own
  std::string language_code = {};  // "en-us"; "und" or empty: not known
  std::string gender = {};         // "female", "male", "unknown" or empty
  std::string path = {};           // empty: a listing does not tell
  std::string kind = {};           // "exported", "recording" or empty
  bool reads_text = true;          // else it takes phonemes alone
};

// A part that a model needs beside its checkpoint: a line of `syrinx doctor`.
struct ModelPart {
  const char* title;
  std::string value;
  std::optional<Error> fault = {};  // why it is not there, and what to do
};

struct SpeechTraits {
  int rate_hz = 0;
  bool clones = false;                // makes voices of recordings
  bool needs_words_to_clone = false;  // of a recording with its words
  bool word_times = false;
  bool takes_bytes = false;                    // SpeechEngineOptions::checkpoint
  std::span<const Precision> precisions = {};  // the first is the default
};

// The option that tells a voice which of its languages a text is in.
inline constexpr const char* kLanguageKnob = "language";

struct SpeechFamily {
  std::string_view kind;  // as in the catalogue and in manifests
  const char* title;      // "Kokoro"
  const char* maker;
  const char* url;
  const char* files;  // "config.yaml of Pocket TTS": what a folder needs to be recognised

  // Whether a place without a manifest holds a model of the family: by `model_type` of a config.json or a file's magic,
  // and by suffixes where neither tells.
  bool (*recognise)(const ModelPlace& place);
  Result<SpeechFiles> (*find_files)(const ModelPlace& place);
  // options.threads has been chosen and the options for loading have been checked.
  Result<std::shared_ptr<SpeechEngine>> (*load)(SpeechEngineOptions options);
  // The front end without the model, and its files, where the checkpoint need not be there.  Null: a model of
  // the family takes text as it is written.
  Result<SpeechFiles> (*find_reader_files)(const ModelPlace& place) = nullptr;
  Result<std::shared_ptr<TextReader>> (*load_reader)(SpeechEngineOptions options) = nullptr;

  Result<std::vector<VoiceEntry>> (*voices)(const SpeechFiles& files);
  std::string (*default_voice)(const SpeechFiles& files);
  VoiceEntry (*describe_voice)(const std::string& name) = [](const std::string& name) {
    return VoiceEntry{.name = name};
  };
  // The language of all its voices by the checkpoint; empty: each voice has its own.
  std::string (*language)(const SpeechFiles& files) = [](const SpeechFiles&) { return std::string(); };
  // Codes of the languages that every voice speaks, as the option kLanguageKnob asks; null or none: each voice has its
  // own.
  std::vector<std::string> (*spoken_languages)(const SpeechFiles& files) = nullptr;
  // The names in a text that blends voices; null: there are no blends.
  Result<std::vector<std::string>> (*blended)(std::string_view voice) = nullptr;
  std::span<const std::pair<const char*, const char*>> known_voices = {};  // OpenAI's names to the nearest of its own

  // Whether a voice of that name or path is there, without reading it.
  Status (*find_voice)(const SpeechFiles& files, const std::string& voice);
  // Whether a text can be spoken with that voice, and whether a file can be added as one: what the engine would say.
  Status (*check_voice)(const SpeechFiles& files, const std::string& voice);
  Status (*check_voice_file)(const SpeechFiles& files, const std::string& name, const std::string& path);
  // Options of the family that this checkpoint does not take; null: it takes all.
  std::vector<std::string_view> (*lacking)(const SpeechFiles& files) = nullptr;
  std::vector<ModelPart> (*parts)(const SpeechFiles& files) = [](const SpeechFiles&) {
    return std::vector<ModelPart>();
  };
  // Describes a file of this family; false for others.  Called before the formats that all families share
  // are tried (out.kind is empty) and after.
  Result<bool> (*describe)(const InspectedFile& file, FileDescription& out);
  // Places beyond this machine that the configuration at a local path names and that loading would fetch; null: none.
  Result<std::vector<std::string>> (*remote_parts)(const std::string& config, const std::string& model) = nullptr;

  SpeechTraits traits;
  std::span<const Knob> knobs;
};

// The table.  Defined in engine/families/families.cc; declared here, since a family's refusals name the others.
std::span<const SpeechFamily* const> speech_families();

std::vector<KnobHolder> speech_knobs();  // of all families, in the order of the table
// kUnsupported for options that the family lacks, with the families that have them; kInvalidArgument for values.
Status check_knobs(const Knobs& knobs, const SpeechFamily& family, KnobNames names = KnobNames::kFields);
// Whether one of the knobs has that name.
bool has_knob(const SpeechFamily& family, std::string_view name);
// Options for loading that the family lacks, and a precision that it is not computed in.
Status check_load_options(const SpeechEngineOptions& options);
Status check_precision(const SpeechFamily& family, Precision precision);

}  // namespace syrinx
