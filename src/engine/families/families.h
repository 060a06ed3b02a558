// Loads the engine of whichever family a model's files belong to.  Thread-safe.
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/recognition/recogniser.h"
#include "engine/speech/speech_engine.h"

namespace syrinx {

// Errors: those of choose_threads() and of the family's own loader.
Result<std::shared_ptr<SpeechEngine>> load_speech_engine(SpeechEngineOptions options);
Result<std::shared_ptr<Recogniser>> load_recogniser(RecogniserOptions options);

}  // namespace syrinx
