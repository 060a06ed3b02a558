#include "models/qwen_tts/voice_cloner.h"

#include "base/check.h"

namespace syrinx::qwen_tts {

Result<ClonedVoice> VoiceCloner::clone(const ReferenceAudio& reference, bool with_codes) {
  const size_t samples = reference.samples.size(), frames = codec_.frames(samples);
  SYRINX_CHECK(reference.sound_samples <= samples, "{} samples of sound in {}", reference.sound_samples, samples);
  if (samples > SpeakerEncoder::kMaxSamples)
    return fail(Code::kLimitExceeded, "a reference of {} samples is too long, at most {} make a voice; use 3 to 15 s",
                samples, SpeakerEncoder::kMaxSamples);
  if (with_codes && codec_.sample_rate() != SpeakerFeatures::kSampleRate)
    return fail(Code::kUnsupported,
                "the codec encodes {} samples a second, the speaker encoder takes {}; a voice's "
                "recording must suit both",
                codec_.sample_rate(), SpeakerFeatures::kSampleRate);
  ClonedVoice voice{.x_vector = std::vector<float>(speaker_.width()), .codes = {}};
  SYRINX_TRY_VOID(speaker_.embed(reference.sound(), voice.x_vector));
  if (!with_codes) return voice;
  SYRINX_TRY(CodecEncoderState state, codec_.make_state(samples));
  voice.codes.resize(frames * codec_.codebooks());
  codec_.encode(state, reference.samples, {voice.codes.data(), {frames, codec_.codebooks()}});
  return voice;
}

}  // namespace syrinx::qwen_tts
