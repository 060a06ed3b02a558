// A voice out of a reference recording: its x-vector, and its codes where its continuation is asked for (spec
// qwen3-tts.md, section 2.4; the maker's create_voice_clone_prompt()).  An object belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/qwen_tts/codec_encoder.h"
#include "models/qwen_tts/reference_audio.h"
#include "models/qwen_tts/speaker_encoder.h"

namespace syrinx::qwen_tts {

// Parts of a PromptRequest.
struct ClonedVoice {
  std::vector<float> x_vector;  // [width]
  std::vector<int32_t> codes;   // [frames, codebooks], or none
};

class VoiceCloner {
 public:
  // The runner must outlive it and is used during calls only.
  VoiceCloner(std::shared_ptr<const SpeakerWeights> speaker, std::shared_ptr<const CodecEncoderWeights> codec,
              nn::Runner& runner)
      : speaker_(std::move(speaker), runner), codec_(std::move(codec), runner) {}

  // The x-vector is that of the sound alone, codes are those of the silence behind it as well.  Errors of
  // SpeakerEncoder::embed() and CodecEncoder::make_state(); kLimitExceeded: more than SpeakerEncoder::kMaxSamples, with
  // the silence; kUnsupported: codes of a codec at another rate than the speaker encoder's.
  Result<ClonedVoice> clone(const ReferenceAudio& reference, bool with_codes);
  size_t codebooks() const { return codec_.codebooks(); }

 private:
  SpeakerEncoder speaker_;
  CodecEncoder codec_;
};

}  // namespace syrinx::qwen_tts
