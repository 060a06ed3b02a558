#include "engine/recogniser.h"

#include "engine/speech_engine.h"
#include "engine/transducer_recogniser.h"
#include "engine/whisper_recogniser.h"

namespace syrinx {

void tell_heard(const TranscribeOptions& options, const Transcript& transcript, size_t& told) {
  if (!options.heard) return;
  for (; told < transcript.segments.size(); ++told) options.heard(transcript.segments[told]);
}

Result<std::shared_ptr<Recogniser>> Recogniser::load(RecogniserOptions options) {
  SYRINX_TRY(options.threads, choose_threads(options.threads));
  switch (options.files.family) {
    // One line a family, with that family's engine.
    case RecogniserFamily::kWhisper: return WhisperRecogniser::load(options);
    case RecogniserFamily::kTransducer: return TransducerRecogniser::load(std::move(options));
  }
  return fail(Code::kUnsupported, "this build has no engine for the recogniser '{}'", options.files.name);
}

}  // namespace syrinx
