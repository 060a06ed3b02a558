#pragma once

#include <string>

#include "base/result.h"
#include "engine/speech/speech_engine.h"

namespace syrinx {

// SpeechEngine::add_voice() of a file that others may change meanwhile; before anybody speaks with a voice of that
// name. Errors: those of WatchedFile besides; where it has changed there is no voice of that name any more, nor one
// that was there before.
Status add_voice_file(SpeechEngine& engine, const std::string& name, const std::string& path);

}  // namespace syrinx
