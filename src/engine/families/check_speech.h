// What loading a speaking model, or speaking with it, would refuse, as far as that can be told without its weights: for
// programs that are to say it at once.  Errors are those of the engine.  Thread-safe.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/speech/speech_files.h"
#include "tensor/precision.h"

namespace syrinx {

Status check_precision(ModelFamily family, Precision precision);

// What SpeechEngine::default_voice() will say.
std::string default_voice(const SpeechFiles& files);

// Whether a text can be spoken with SpeakOptions::voice, a name or a path: its file is there, and is a voice.
Status check_voice(const SpeechFiles& files, const std::string& voice);

// Whether the file can be given to SpeechEngine::add_voice() under that name.  Not seen: a recording, where the weights
// are those without cloning; of Kokoro, a voice of another width than the model's.
Status check_voice_file(const SpeechFiles& files, const std::string& name, const std::string& path);

}  // namespace syrinx
