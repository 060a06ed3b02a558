// Where the parts of a recognising model are: its checkpoint, and the voice activity model beside it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/paths.h"

namespace syrinx {

inline constexpr const char* kDefaultRecogniser = "whisper-base";
inline constexpr const char* kVoiceActivityModel = "silero-vad";

enum class RecogniserFamily : uint8_t { kWhisper, kTransducer };

struct RecognitionFiles {
  std::string name = {};   // what was asked for
  bool installed = false;  // else a path
  RecogniserFamily family = RecogniserFamily::kWhisper;
  // Whisper: CTranslate2's model.bin, or .safetensors with config.json beside it, or the maker's .pt.  Transducers: a
  // .nemo archive, a .ckpt or .pt with model_config.yaml beside it, or .safetensors with config.json beside it; an
  // index stands for .safetensors in several files.
  std::string checkpoint = {};
  std::string voice_activity = {};  // Silero's file; empty when it is not installed
};

// `model` is the name of an installed model, a folder that holds a checkpoint, or a checkpoint file: what holds a '/',
// or a '.' and is no installed model, is a path.  Empty: kDefaultRecogniser.  The family is told by the file's kind,
// and of .safetensors by the config.json beside it, whose first MiB is read.  kNotFound says what is missing and how to
// get it; kUnsupported for a config.json of something else; kInvalidArgument asks which of several checkpoints of one
// kind is meant, where none of them has the name that the families' own readers look for.
Result<RecognitionFiles> find_recognition_files(const std::string& model, const std::string& models_folder);

// Silero's file of the installed kVoiceActivityModel; empty when it is not installed.
std::string voice_activity_file(const std::string& models_folder);

// As packed_folder() of speech_files.h.
std::string packed_folder(const UserPaths& paths, const RecognitionFiles& files);

}  // namespace syrinx
