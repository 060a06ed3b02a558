// Where the parts of a speaking model are: its checkpoint, its voices, and what reads text to it.
#pragma once

#include <string>

#include "base/result.h"
#include "store/paths.h"

namespace syrinx {

// Where models are installed, one folder each.
inline std::string models_folder(const UserPaths& paths) { return paths.data + "/models"; }

struct SpeechFamily;  // speech_family.h

struct SpeechFiles {
  std::string name;  // what was asked for
  const SpeechFamily* family = nullptr;
  // Kokoro: kokoro-v1.0.int8.onnx, another export, or kokoro-v1_0.pth; empty: given otherwise.  Pocket TTS: the
  // configuration, or weights with one beside them (models/pocket_tts/model.h).
  std::string checkpoint;
  // Kokoro: folder of NAME.bin; may be missing as long as voices are given by path.  Pocket TTS: the folder that
  // pocket_voices.h looks into.
  std::string voices;
  std::string lexicon;  // Kokoro: folder of us_gold.json, ...; empty when none was found
};

// Where what is packed from these files is kept: packed/NAME for an installed model, packed/files for others.
std::string packed_folder(const UserPaths& paths, const SpeechFiles& files);

}  // namespace syrinx
