#include "engine/families/families.h"

#include <utility>

#include "engine/families/kokoro/kokoro_engine.h"
#include "engine/families/pocket_tts/pocket_engine.h"
#include "engine/families/transducer/transducer_recogniser.h"
#include "engine/families/whisper/whisper_recogniser.h"
#include "engine/threads.h"

namespace syrinx {

Result<std::shared_ptr<SpeechEngine>> load_speech_engine(SpeechEngineOptions options) {
  SYRINX_TRY(options.threads, choose_threads(options.threads));
  switch (options.files.family) {
    case ModelFamily::kKokoro: return KokoroEngine::load(std::move(options));
    case ModelFamily::kPocketTts: return PocketEngine::load(std::move(options));
  }
  return fail(Code::kInternal, "no engine for the model '{}'", options.files.name);
}

Result<std::shared_ptr<Recogniser>> load_recogniser(RecogniserOptions options) {
  SYRINX_TRY(options.threads, choose_threads(options.threads));
  switch (options.files.family) {
    case RecogniserFamily::kWhisper: return WhisperRecogniser::load(options);
    case RecogniserFamily::kTransducer: return TransducerRecogniser::load(std::move(options));
  }
  return fail(Code::kUnsupported, "this build has no engine for the recogniser '{}'", options.files.name);
}

}  // namespace syrinx
