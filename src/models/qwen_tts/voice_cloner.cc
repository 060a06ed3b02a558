#include "models/qwen_tts/voice_cloner.h"

namespace syrinx::qwen_tts {

Result<ClonedVoice> VoiceCloner::clone(const ReferenceAudio& reference, bool with_codes) {
  ClonedVoice voice{.x_vector = std::vector<float>(speaker_.width()), .codes = {}};
  SYRINX_TRY_VOID(speaker_.embed(reference.sound(), voice.x_vector));
  if (!with_codes) return voice;
  const size_t samples = reference.samples.size(), frames = codec_.frames(samples);
  SYRINX_TRY(CodecEncoderState state, codec_.make_state(samples));
  voice.codes.resize(frames * codec_.codebooks());
  codec_.encode(state, reference.samples, {voice.codes.data(), {frames, codec_.codebooks()}});
  return voice;
}

}  // namespace syrinx::qwen_tts
