#include "models/qwen_tts/voice_cloner.h"

#include <gmock/gmock.h>

#include "clone_fixture.h"

namespace syrinx::qwen_tts {
namespace {

TEST(QwenVoiceCloner, VectorIsOfTheSoundAndCodesOfAll) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  VoiceCloner cloner(speaker_weights(), encoder_weights(), runner);
  ReferenceAudio reference{.samples = recording(kShort), .sound_samples = kShort};
  const auto voice = cloner.clone(reference, true);
  ASSERT_TRUE(voice) << voice.error().message;
  EXPECT_LE(largest_difference(voice->x_vector, maker().get("short.x_vector")), 1e-5);
  EXPECT_EQ(voice->codes, maker().get<int32_t>("short.codes"));
  EXPECT_EQ(cloner.codebooks(), 16u);
  reference.samples.resize(kShort + 12000);
  const auto with_silence = cloner.clone(reference, true), without_codes = cloner.clone(reference, false);
  ASSERT_TRUE(with_silence && without_codes);
  EXPECT_EQ(with_silence->x_vector, voice->x_vector);
  EXPECT_EQ(with_silence->codes.size(), (kShort + 12000 + 1919) / 1920 * 16);
  EXPECT_EQ(without_codes->x_vector, voice->x_vector);
  EXPECT_TRUE(without_codes->codes.empty());
}

TEST(QwenVoiceCloner, UnusableReferencesAreRefused) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  VoiceCloner cloner(speaker_weights(), encoder_weights(), runner);
  const auto voice = cloner.clone({.samples = std::vector<float>(1000), .sound_samples = 1000}, false);
  ASSERT_FALSE(voice);
  EXPECT_EQ(voice.error().code, Code::kInvalidArgument);
  constexpr size_t kMost = SpeakerEncoder::kMaxSamples;
  for (const size_t sound : {kShort, kMost + 1}) {
    const auto other = cloner.clone({.samples = std::vector<float>(kMost + 1), .sound_samples = sound}, true);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Code::kLimitExceeded);
  }
}

TEST(QwenVoiceCloner, CodecsOfOtherRatesAreRefused) {
  ThreadTeam team(1);
  nn::Runner runner(team);
  const Tensors tensors = Tensors::of_codec();
  auto loaded = CodecEncoderWeights::load(tensors.source(), "codec", codec_config());
  ASSERT_TRUE(loaded) << loaded.error().message;
  loaded->sample_rate = 48000;
  const auto codec = std::make_shared<const CodecEncoderWeights>(std::move(*loaded));
  VoiceCloner cloner(speaker_weights(), codec, runner);
  const ReferenceAudio reference{.samples = recording(kShort), .sound_samples = kShort};
  EXPECT_TRUE(cloner.clone(reference, false));
  const auto voice = cloner.clone(reference, true);
  ASSERT_FALSE(voice);
  EXPECT_EQ(voice.error().code, Code::kUnsupported);
  EXPECT_THAT(voice.error().message,
              testing::HasSubstr("encodes 48000 samples a second, the speaker encoder takes 24000"));
}

}  // namespace
}  // namespace syrinx::qwen_tts
