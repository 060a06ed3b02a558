// Where the parts of a recognising model are: its checkpoint, and the voice activity model beside it.
#pragma once

#include <string>

#include "base/result.h"
#include "store/paths.h"

namespace syrinx {

inline constexpr const char* kVoiceActivityModel = "silero-vad";

struct RecognitionFamily;  // recognition_family.h

struct RecognitionFiles {
  std::string name = {};   // what was asked for
  bool installed = false;  // else a path
  const RecognitionFamily* family = nullptr;
  // Whisper: CTranslate2's model.bin, or .safetensors with config.json beside it, or the maker's .pt.  Transducers: a
  // .nemo archive, a .ckpt or .pt with model_config.yaml beside it, or .safetensors with config.json beside it; an
  // index stands for .safetensors in several files.
  std::string checkpoint = {};
  std::string voice_activity = {};  // Silero's file; empty when it is not installed
};

// Silero's file of the installed kVoiceActivityModel; empty when it is not installed.
std::string voice_activity_file(const std::string& models_folder);

// As packed_folder() of speech_files.h.
std::string packed_folder(const UserPaths& paths, const RecognitionFiles& files);

}  // namespace syrinx
