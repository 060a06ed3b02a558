// Voices as files between us and the maker's package, both of the same recording.  tests/data/pocket_tts/NAME has the
// package's file, and what it speaks after that one; bench/parity/pocket_tts.py has the package read ours.
#include <cmath>

#include "fixtures.h"
#include "models/pocket_tts/model.h"
#include "models/pocket_tts/voice_file.h"
#include "models/pocket_tts/voice_recording.h"
#include "models/pocket_tts/voice_state.h"
#include "stages.h"

namespace syrinx::pocket {
namespace {

class VoiceExchange : public ::testing::TestWithParam<TestModel> {
 protected:
  void SetUp() override {
    auto loaded = Model::load(data(GetParam().name));
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    model_ = std::move(*loaded);
    auto reference = ReferenceFiles::open(data(GetParam().name));
    ASSERT_TRUE(reference.has_value()) << reference.error().message;
    reference_ = std::move(*reference);
  }
  VoiceState cloned() {
    const auto file = MappedFile::open(data("voice.wav"));
    EXPECT_TRUE(file.has_value());
    const auto recording = read_voice_recording(file->bytes(), kSampleRateHz, false, "voice.wav");
    EXPECT_TRUE(recording.has_value()) << recording.error().message;
    auto voice = clone_voice(*model_, *recording, runner_);
    EXPECT_TRUE(voice.has_value()) << voice.error().message;
    return *voice;
  }
  // Every generation of the reference after this voice.
  void expect_the_makers_sound(const VoiceState& voice) {
    const auto generations = read_generations(reference_.facts, model_->config().eos_threshold);
    ASSERT_TRUE(generations.has_value()) << generations.error().message;
    ASSERT_GE(generations->size(), 2u);
    ChunkSpeaker speaker(model_->flow_lm(), model_->decoder(),
                         *make_schedule(*model_->flow_lm(), GetParam().evaluations), runner_);
    for (const Generation& generation : *generations)
      EXPECT_EQ(count_within(generated_sound(generation, voice, speaker, reference_.arrays), 1e-4), 1u);
  }

  std::shared_ptr<const Model> model_;
  ReferenceFiles reference_;
  ThreadTeam team_{1};
  nn::Runner runner_{team_};
};
INSTANTIATE_TEST_SUITE_P(All, VoiceExchange, ::testing::ValuesIn(test_models()), name_of);

TEST_P(VoiceExchange, OurFileIsTheirsButForRounding) {
  const Arrays theirs(GetParam().name + "/voice.safetensors");
  const std::string file = write_voice_file(exported(*cloned()), GetParam().config);
  const auto ours = Safetensors::parse(std::as_bytes(std::span(file)), "ours");
  ASSERT_TRUE(ours.has_value()) << ours.error().message;
  ASSERT_EQ(ours->tensors().size(), theirs.tensors().tensors().size());
  for (const TensorRef& want : theirs.tensors().tensors()) {
    const TensorRef* const got = ours->find(want.name);
    ASSERT_NE(got, nullptr) << want.name;
    EXPECT_EQ(got->dims, want.dims) << want.name;
    ASSERT_EQ(got->dtype, want.dtype) << want.name;
    if (want.dtype == DType::kF32) {
      EXPECT_LE(largest_difference(to_f32(got->bytes, got->dtype), to_f32(want.bytes, want.dtype)), 1e-5) << want.name;
    } else {
      EXPECT_TRUE(std::equal(got->bytes.begin(), got->bytes.end(), want.bytes.begin(), want.bytes.end())) << want.name;
    }
  }
}

TEST_P(VoiceExchange, WeSpeakAfterTheirFile) {
  const auto file = MappedFile::open(data(GetParam().name + "/voice.safetensors"));
  ASSERT_TRUE(file.has_value());
  const auto read = parse_voice_file(file->bytes(), "theirs", GetParam().config);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const auto voice = make_voice(*model_, *read, runner_);
  ASSERT_TRUE(voice.has_value()) << voice.error().message;
  expect_the_makers_sound(*voice);
}

TEST_P(VoiceExchange, FromTheRecordingToTheSound) { expect_the_makers_sound(cloned()); }

}  // namespace
}  // namespace syrinx::pocket
