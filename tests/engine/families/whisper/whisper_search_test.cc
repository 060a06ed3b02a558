// How Whisper searches behind the recogniser's interface, with the tiny checkpoint of tests/data/whisper.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
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

  std::vector<RecognitionEvent> streamed(std::span<const float> samples, const TranscribeOptions& options,
                                         size_t piece = SIZE_MAX) {
    auto started = recogniser_->start(options);
    EXPECT_TRUE(started.has_value());
    std::vector<RecognitionEvent> events;
    while (started && !samples.empty()) {
      const auto some = samples.first(std::min(piece, samples.size()));
      EXPECT_TRUE((*started)->push(some, events).has_value());
      samples = samples.subspan(some.size());
    }
    EXPECT_TRUE(started && (*started)->finish(events).has_value());
    return events;
  }

  const TempFolder place_;
  std::shared_ptr<Recogniser> recogniser_;
};

// Text, tokens and confidence of each segment.
std::vector<std::string> lines_of(const Result<Transcript>& transcript) {
  EXPECT_TRUE(transcript.has_value());
  std::vector<std::string> lines;
  if (!transcript) return lines;
  for (const TranscriptSegment& segment : transcript->segments)
    lines.push_back(fmt::format("{} {} {}", segment.text, fmt::join(segment.tokens, " "), segment.confidence));
  return lines;
}

std::vector<std::string> finals_of(const std::vector<RecognitionEvent>& events) {
  std::vector<std::string> texts;
  for (const RecognitionEvent& event : events)
    if (event.is_final) texts.push_back(event.result.text);
  return texts;
}

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
  const auto finals = [&](const Knobs& knobs) {
    return finals_of(streamed(std::span(samples).first(30'000), {.language = "en", .knobs = knobs}));
  };
  EXPECT_NE(finals(told), finals({}));
}

// Whatever else the recogniser has searched for, or searches for at the same time.
TEST_F(WhisperSearch, BeamRepeatsItsResult) {
  const std::vector<float> samples = sound(60'000);
  const auto searched = [&](const Knobs& knobs) {
    return lines_of(recogniser_->transcribe(samples, {.language = "en", .knobs = knobs}, {}));
  };
  const std::vector<std::string> first = searched({{"beam", 5.0}}), greedy = searched({{"beam", 0.0}});
  EXPECT_FALSE(first.empty());
  EXPECT_NE(first, greedy);
  searched({{"beam", 16.0}, {"patience", 2.0}});
  searched({{"temperature", 0.8}, {"best_of", 16.0}});
  EXPECT_EQ(searched({}), first) << "a recording's beam is 5";
  std::vector<std::string> beside;
  std::thread other([&] { beside = searched({{"beam", 0.0}}); });
  EXPECT_EQ(searched({{"beam", 5.0}}), first);
  other.join();
  EXPECT_EQ(beside, greedy);
}

TEST_F(WhisperSearch, BeamStreamsAgreeInAnyPieces) {
  const std::vector<float> samples = sound(50'000);
  const TranscribeOptions options = {.language = "en", .knobs = {{"beam", 3.0}}};
  const auto told = [&](size_t piece) {
    std::vector<std::string> lines;
    for (const RecognitionEvent& event : streamed(samples, options, piece))
      lines.push_back(fmt::format("{} {} {}", event.is_final, event.result.text, event.stable_bytes));
    return lines;
  };
  const std::vector<std::string> whole = told(samples.size());
  EXPECT_GT(whole.size(), 2u);
  EXPECT_EQ(told(1000), whole);
  EXPECT_EQ(told(11'200), whole);
}

// One window of a stream has all tokens, of which a recording leaves those of an unfinished segment to the next window.
TEST_F(WhisperSearch, BeamStreamFindsTheRecordingsTokens) {
  const std::vector<float> samples = sound(11'000);
  const TranscribeOptions options = {.language = "en", .words = true, .knobs = {{"beam", 5.0}}};
  const auto recording = recogniser_->transcribe(samples, options, {});
  ASSERT_TRUE(recording.has_value() && !recording->segments.empty());
  const std::vector<RecognitionEvent> events = streamed(samples, options);
  ASSERT_EQ(events.size(), 1u);
  const std::vector<int32_t>&first = recording->segments.front().tokens, &all = events.front().result.tokens;
  ASSERT_FALSE(first.empty());
  ASSERT_GE(all.size(), first.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()));
}

// An utterance that was cut for its length is followed by one that is told the prompt as the first one was: it has the
// words of a stream of its own.
TEST_F(WhisperSearch, PromptOutlastsACut) {
  constexpr size_t kPeriod = 11'200;  // 0.7 s, heard once
  const std::vector<float> samples = sound(3 * kPeriod);
  const auto finals = [&](std::span<const float> some, const Knobs& knobs) {
    return finals_of(streamed(some, {.language = "en", .endpoints = {.max_utterance_s = 0.7}, .knobs = knobs}));
  };
  const Knobs told = {{"prompt", std::string("the dog and the fox")}};
  const std::vector<std::string> cut = finals(samples, told), plain = finals(samples, {});
  ASSERT_EQ(cut.size(), 3u);
  ASSERT_EQ(plain.size(), 3u);
  size_t heeded = 0;
  for (size_t i = 0; i < cut.size(); ++i) {
    const auto own = finals(std::span(samples).subspan(i * kPeriod, kPeriod), told);
    ASSERT_EQ(own.size(), 1u);
    EXPECT_EQ(cut[i], own.front()) << i;
    heeded += cut[i] != plain[i] ? 1 : 0;
  }
  EXPECT_EQ(heeded, cut.size());
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
