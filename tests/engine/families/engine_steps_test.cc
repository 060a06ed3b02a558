// What engines that speak tell of their steps, with the small checkpoints; whose sound is late is tested where turns
// are taken (schedule/scheduler_test.cc, pocket_tts/stream_pool_test.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "engine/families/families.h"
#include "engine/families/find_speech_files.h"
#include "engine/families/kokoro/kokoro_engine.h"
#include "engine/speech/speech_engine.h"

namespace syrinx {
namespace {

constexpr int kSpeechRateHz = 24000;
const std::string kData = SYRINX_TEST_DATA;

struct Said {
  StepFigures steps;
  size_t chunks = 0;
  double longest_s = 0;  // of the chunks
};

// By an engine of its own.
Said say(const std::string& model, const SpeakOptions& options, const std::string& text) {
  SpeechEngineOptions load;
  auto files = find_speech_files(model, "/nowhere");
  EXPECT_TRUE(files.has_value()) << files.error().message;
  if (!files) return {};
  load.files = *files;
  load.threads = 1;
  load.first_voice = options.voice;
  load.first_is_phonemes = options.knobs.flag("phonemes");
  auto engine = load_speech_engine(std::move(load));
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  if (!engine) return {};
  const StepFigures before = (*engine)->steps();
  auto session = (*engine)->start(options);
  EXPECT_TRUE(session.has_value()) << session.error().message;
  if (!session) return {};
  EXPECT_TRUE((*session)->speak(text));
  Said said;
  for (SpeechChunk chunk;; ++said.chunks) {
    const auto more = (*session)->next(chunk);
    EXPECT_TRUE(more.has_value()) << more.error().message;
    if (!more || !*more) break;
    said.longest_s = std::max(said.longest_s, static_cast<double>(chunk.samples.size()) / kSpeechRateHz);
  }
  said.steps = (*engine)->steps().since(before);
  EXPECT_EQ((*engine)->waiting(), 0u);
  EXPECT_GT(said.chunks, 0u);
  EXPECT_GT(said.steps.took_ns, 0);
  return said;
}

// The text is a step, too.
TEST(EngineSteps, OfPocketTtsAreMoreThanItsFrames) {
  const std::string folder = kData + "/pocket_tts/english";
  const Said said = say(folder, {.voice = folder + "/voice.safetensors"}, "Hello.");
  EXPECT_GT(said.steps.count(), said.chunks);
}

// The only one has the first sound, for which nobody hears a gap, however late it is.
TEST(EngineSteps, OfKokoroAreItsPieces) {
  const SpeakOptions options{.voice = kData + "/kokoro/tiny_voice.bin", .knobs = {{"phonemes", 1.0}}};
  const Said one = say(kData + "/kokoro/tiny.onnx", options, "həlˈO.");
  EXPECT_EQ(one.steps.count(), 1u);
  EXPECT_EQ(one.chunks, 1u);
  EXPECT_EQ(one.steps.late, 0u);
}

// Others are served between the steps: none makes more than 15 s of sound, however much is asked for at once, and
// slowly.
TEST(EngineSteps, OfKokoroAreNotLong) {
  SpeakOptions options{.voice = kData + "/kokoro/tiny_voice.bin", .knobs = {{"speed", 0.25}, {"phonemes", 1.0}}};
  std::string endless;
  for (int i = 0; i < 80; ++i) endless += "həlˈO ";
  const Said said = say(kData + "/kokoro/tiny.onnx", options, endless);
  EXPECT_LE(said.longest_s, 15.0);
}

// Who leaves while others have their turns leaves at once, and no step of his follows: the second of two sessions waits
// for its first piece while the team is kept from both.
TEST(EngineSteps, OfKokoroNoneFollowsForWhoHasLeft) {
  SpeechEngineOptions load;
  load.files = *find_speech_files(kData + "/kokoro/tiny.onnx", "/nowhere");
  load.threads = 1;
  load.first_is_phonemes = true;
  const auto loaded = load_speech_engine(std::move(load));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  auto& engine = static_cast<KokoroEngine&>(**loaded);
  const SpeakOptions options{.voice = kData + "/kokoro/tiny_voice.bin", .knobs = {{"phonemes", 1.0}}};
  auto stays = *engine.start(options);
  {
    const StepQueue::Turn held(engine.queue(), kDueAtOnce);
    const auto wait_for = [&](size_t waiting) {
      while (engine.waiting() != waiting) std::this_thread::yield();
    };
    ASSERT_TRUE(stays->speak("həlˈO."));
    wait_for(1);
    auto leaves = *engine.start(options);
    ASSERT_TRUE(leaves->speak("həlˈO."));
    wait_for(2);
    leaves->cancel();
    wait_for(1);
    EXPECT_EQ(leaves->next().error().code, Code::kCancelled);
    leaves.reset();  // waits for its thread
  }
  EXPECT_TRUE(stays->next()->has_value());
  EXPECT_FALSE(stays->next()->has_value());
  EXPECT_EQ(engine.steps().count(), 2u);  // with ours
}

}  // namespace
}  // namespace syrinx
