// How Whisper searches behind the recogniser's interface, with the tiny checkpoint of tests/data/whisper.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/families/families.h"
#include "engine/families/whisper/whisper_family.h"
#include "tests/base/temp_folder.h"
#include "tests/models/whisper/small.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

class WhisperSearch : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path data = fs::path(SYRINX_TEST_DATA) / "whisper", place = place_.path();
    for (const char* const file : {"ct2/model.bin", "ct2/config.json", "tokenizer.json"})
      fs::copy_file(data / file, place / fs::path(file).filename());
    const auto loaded =
        load_recogniser({.files = {.name = "tiny", .family = &whisper_family(), .checkpoint = place_.file("model.bin")},
                         .precision = Precision::kF32,
                         .threads = 1});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    recogniser_ = *loaded;
  }

  // Noise whose loudness changes every 0.1 s.
  static std::vector<float> sound(size_t samples) {
    test::Draws draws(6);
    const std::vector<float> loudness = draws.floats(samples / 1600 + 1);
    std::vector<float> values = draws.floats(samples, -0.5, 0.5);
    for (size_t i = 0; i < samples; ++i) values[i] *= loudness[i / 1600];
    return values;
  }

  const TempFolder place_;
  std::shared_ptr<Recogniser> recogniser_;
};

// Patience is refused where there is no beam: recordings have one, streams and recordings whose speaker waits do not.
TEST_F(WhisperSearch, RecordingsTakeABeam) {
  const Knobs patient = {{"patience", 2.0}};
  EXPECT_TRUE(recogniser_->check_recording({.knobs = patient}).has_value());
  EXPECT_TRUE(recogniser_->transcribe(sound(16'000), {.language = "en", .knobs = patient}, {}).has_value());
  const std::string fault = "patience is for a beam search; give a beam of 1 or more, or leave it out";
  EXPECT_EQ(recogniser_->check_recording({.is_live = true, .knobs = patient}).error().message, fault);
  EXPECT_EQ(recogniser_->transcribe(sound(1600), {.is_live = true, .knobs = patient}, {}).error().message, fault);
  EXPECT_EQ(recogniser_->check_stream({.knobs = patient}).error().message, fault);
  EXPECT_EQ(recogniser_->start({.knobs = patient}).error().message, fault);
  EXPECT_TRUE(recogniser_->start({.knobs = {{"patience", 2.0}, {"beam", 3.0}}}).has_value());
}

TEST_F(WhisperSearch, PromptChangesTheText) {
  const std::vector<float> samples = sound(60'000);
  const Knobs told = {{"prompt", std::string("the dog and the fox")}}, blank = {{"prompt", std::string(" \t")}};
  const auto text_of = [&](const Knobs& knobs) {
    const auto transcript = recogniser_->transcribe(samples, {.language = "fr", .knobs = knobs}, {});
    EXPECT_TRUE(transcript.has_value()) << transcript.error().message;
    return transcript ? transcript->text() : "";
  };
  const std::string plain = text_of({});
  EXPECT_NE(text_of(told), plain);
  EXPECT_EQ(text_of(blank), plain);
  const auto streamed = [&](const Knobs& knobs) {
    auto started = recogniser_->start({.language = "en", .knobs = knobs});
    EXPECT_TRUE(started.has_value());
    std::vector<RecognitionEvent> events;
    EXPECT_TRUE((*started)->push(std::span(samples).first(30'000), events).has_value());
    EXPECT_TRUE((*started)->finish(events).has_value());
    std::string text;
    for (const RecognitionEvent& event : events) text += event.result.text + "|";
    return text;
  };
  EXPECT_NE(streamed(told), streamed({}));
}

// The first attempt is that hot, those behind it hotter; so are all of a stream's.
TEST_F(WhisperSearch, TemperatureIsTheFirstOne) {
  const auto transcript =
      recogniser_->transcribe(sound(16'000), {.language = "en", .knobs = {{"temperature", 0.3}, {"best_of", 2.0}}}, {});
  ASSERT_TRUE(transcript.has_value()) << transcript.error().message;
  ASSERT_FALSE(transcript->segments.empty());
  for (const TranscriptSegment& segment : transcript->segments) {
    const float steps = (segment.window->temperature - 0.3f) / 0.2f;
    EXPECT_NEAR(steps, std::round(steps), 1e-5) << segment.window->temperature;
    EXPECT_GE(steps, 0.0f);
    EXPECT_LE(segment.window->temperature, 1.0f);
  }
}

TEST_F(WhisperSearch, RefusesValuesBeyondLimits) {
  const auto error_of = [&](const Knobs& knobs) {
    const auto transcript = recogniser_->transcribe(sound(1600), {.knobs = knobs}, {});
    EXPECT_FALSE(transcript.has_value());
    EXPECT_FALSE(recogniser_->start({.knobs = knobs}).has_value());
    EXPECT_FALSE(recogniser_->check_recording({.knobs = knobs}).has_value());
    return transcript ? Error{} : transcript.error();
  };
  EXPECT_EQ(error_of({{"beam", 17.0}}).message, "'beam' is 17; give a whole number from 0 to 16");
  EXPECT_EQ(error_of({{"beam", 1.0}, {"patience", 0.5}}).message,
            "a beam of 1 with a patience of 0.5 finishes nothing; give more of either");
  EXPECT_EQ(error_of({{"temperature", 1.5}}).code, Code::kInvalidArgument);
  EXPECT_EQ(error_of({{"length_penalty", -0.1}}).code, Code::kInvalidArgument);
  EXPECT_EQ(error_of({{"best_of", 0.0}}).code, Code::kInvalidArgument);
  EXPECT_EQ(error_of({{"prompt", std::string(16'385, 'x')}}).message, "'prompt' has 16385 bytes; give at most 16384");
}

}  // namespace
}  // namespace syrinx
