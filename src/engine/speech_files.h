// Where the parts of a speaking model are: its checkpoint, its voices, and what reads text to it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/paths.h"
#include "models/g2p/english.h"

namespace syrinx {

inline constexpr const char* kDefaultModel = "kokoro";
inline constexpr const char* kDefaultVoice = "af_heart";

// Where models are installed, one folder each.
inline std::string models_folder(const UserPaths& paths) { return paths.data + "/models"; }

enum class ModelFamily : uint8_t { kKokoro, kPocketTts };

struct SpeechFiles {
  std::string name;  // what was asked for
  ModelFamily family = ModelFamily::kKokoro;
  // Kokoro: kokoro-v1.0.int8.onnx, another export, or kokoro-v1_0.pth; empty: given otherwise.  Pocket TTS: the
  // configuration, or weights with one beside them (models/pocket_tts/model.h).
  std::string checkpoint;
  // Kokoro: folder of NAME.bin; may be missing as long as voices are given by path.  Pocket TTS: the folder that
  // pocket_voices.h looks into.
  std::string voices;
  std::string lexicon;  // Kokoro: folder of us_gold.json, ...; empty when none was found
};

// `model` is the name of an installed model ("kokoro", "pocket-tts:french"), a folder that holds a checkpoint, or a
// checkpoint file: whatever holds a '/' or a '.' is a path, and hf:// or http(s):// a configuration or a file that is
// fetched unless it is here (remote_files.h).  Kokoro: voices are looked for in voices/ beside the checkpoint; the
// lexicon in g2p/ or english-g2p/ there, beside it, and among the installed models below `models_folder`.  Reads
// directories only. kNotFound says what is missing and how to get it, kInvalidArgument asks which of several
// checkpoints is meant; for places elsewhere the errors of fetch().
Result<SpeechFiles> find_speech_files(const std::string& model, const std::string& models_folder);

// Where what is packed from these files is kept: packed/NAME for an installed model, packed/files for others.
std::string packed_folder(const UserPaths& paths, const SpeechFiles& files);

// The front end's files in a lexicon folder, for a voice of either side of the ocean.
g2p::G2pFiles lexicon_files(const std::string& lexicon_folder, bool british);

}  // namespace syrinx
