#include "models/qwen_tts/frame_generator.h"
#include "talker_cases.h"

namespace syrinx::qwen_tts {
namespace {

using namespace test;

SpeechSettings drawn(size_t frames) {
  SpeechSettings settings;
  settings.draws.max_frames = frames;
  settings.seed = 5;
  return settings;
}

// The text comes token by token, as late as it may.
TEST(FrameGenerator, TextThatArrivesEqualsWhole) {
  for (const Precision precision : kAllPrecisions) {
    SCOPED_TRACE(precision_name(precision));
    const auto weights = weights_of("base", precision);
    Case one = case_of("voice");
    one.text = "the user is in the air, 0123456789, and all that";
    one.text_first = false;
    const Prompt whole = prompt_of(one, weights->config);
    ASSERT_GT(whole.trailing.size(), FrameStream::kAheadRows);
    const size_t frames = whole.trailing.size() + 5;
    const SpeechSettings settings = drawn(2 * frames);
    Prompt begun = whole;
    begun.ends = false;
    begun.trailing.clear();
    Running alone(weights, 1, 1);
    FrameStream other = alone.begun(whole, drawn(frames));
    const std::vector<int32_t> expected = alone.frames(other);
    Running run(weights, 1, 1);
    FrameStream stream = run.begun(begun, settings);
    std::vector<int32_t> codes;
    for (size_t given = 0; stream.end() == End::kNone;) {
      if (stream.needs_text()) {
        EXPECT_EQ(stream.frames(), given + 1);
        if (given + 1 == whole.trailing.size()) {
          run.generator->end_text(stream, frames);
        } else {
          run.generator->add_text(stream, std::span(whole.trailing).subspan(given, 1));
        }
        ++given;
      }
      FrameStream* const streams[] = {&stream};
      run.generator->step(streams);
      if (stream.end() == End::kNone) codes.insert(codes.end(), stream.codes().begin(), stream.codes().end());
    }
    EXPECT_EQ(codes, expected);
  }
}

}  // namespace
}  // namespace syrinx::qwen_tts
