// Whisper behind the recogniser's interface, with the tiny checkpoint of tests/data/whisper.
#include "engine/whisper_recogniser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "../base/temp_folder.h"
#include "engine/whisper_stream.h"
#include "tests/engine/noise_detector.h"
#include "tests/models/whisper/small.h"

namespace syrinx {
namespace {

namespace fs = std::filesystem;

class WhisperRecognition : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    place_ = std::make_unique<TempFolder>();
    folder_ = place_->path();
    const fs::path data = fs::path(SYRINX_TEST_DATA) / "whisper";
    for (const char* const file : {"ct2/model.bin", "ct2/config.json", "tokenizer.json"})
      fs::copy_file(data / file, folder_ / fs::path(file).filename());
  }
  static void TearDownTestSuite() { place_.reset(); }

  void SetUp() override { load(""); }
  void load(const std::string& voice_activity) {
    auto loaded = Recogniser::load({.files = {.name = "tiny",
                                              .family = RecogniserFamily::kWhisper,
                                              .checkpoint = (folder_ / "model.bin").string(),
                                              .voice_activity = voice_activity},
                                    .precision = Precision::kF32,
                                    .threads = 1});
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    recogniser_ = *loaded;
  }

  static std::vector<float> sound(size_t samples) {
    test::Draws draws(6);
    const std::vector<float> loudness = draws.floats(samples / 1600 + 1);
    std::vector<float> values = draws.floats(samples, -0.5, 0.5);
    for (size_t i = 0; i < samples; ++i) values[i] *= loudness[i / 1600];
    return values;
  }

  // The events of a stream that is pushed in pieces, as lines.
  std::vector<std::string> stream(std::span<const float> samples, size_t piece) {
    auto started = recogniser_->start({.language = "en"});
    EXPECT_TRUE(started.has_value());
    std::vector<RecognitionEvent> events;
    while (!samples.empty()) {
      const auto some = samples.first(std::min(piece, samples.size()));
      EXPECT_TRUE((*started)->push(some, events).has_value());
      samples = samples.subspan(some.size());
    }
    EXPECT_TRUE((*started)->finish(events).has_value());
    EXPECT_EQ((*started)->language(), "en");
    std::vector<std::string> lines;
    for (const RecognitionEvent& event : events) {
      EXPECT_LE(event.stable_bytes, event.result.text.size());
      EXPECT_GE(event.latency_ms, 0.0);
      lines.push_back(fmt::format("{} {} {} {} {} {}", event.segment, event.is_final, event.result.text,
                                  event.stable_bytes, event.result.start_s, event.result.end_s));
    }
    return lines;
  }

  static std::unique_ptr<TempFolder> place_;
  static fs::path folder_;
  std::shared_ptr<Recogniser> recogniser_;
};
std::unique_ptr<TempFolder> WhisperRecognition::place_;
fs::path WhisperRecognition::folder_;

TEST_F(WhisperRecognition, TranscribesARecording) {
  EXPECT_EQ(recogniser_->name(), "tiny");
  EXPECT_EQ(recogniser_->threads(), 1);
  EXPECT_EQ(recogniser_->precision(), Precision::kF32);
  EXPECT_GT(recogniser_->load_ms(), 0.0);
  std::vector<double> done;
  const auto transcript = recogniser_->transcribe(sound(80'000), {.language = "FR", .words = true}, [&](double done_s) {
    done.push_back(done_s);
    return true;
  });
  ASSERT_TRUE(transcript.has_value()) << transcript.error().message;
  EXPECT_EQ(transcript->language, "fr");
  EXPECT_DOUBLE_EQ(transcript->audio_s, 5.0);
  ASSERT_FALSE(transcript->segments.empty());
  ASSERT_FALSE(done.empty());
  EXPECT_DOUBLE_EQ(done.back(), 5.0);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  size_t words = 0;
  for (const TranscriptSegment& segment : transcript->segments) {
    EXPECT_LE(segment.start_s, segment.end_s);
    EXPECT_GT(segment.confidence, 0.0f);
    EXPECT_LE(segment.confidence, 1.0f);
    EXPECT_FALSE(segment.text.starts_with(' '));
    for (const int32_t token : segment.tokens) EXPECT_LT(token, 500);
    for (const TranscriptWord& word : segment.words) EXPECT_LE(word.start_s, word.end_s);
    words += segment.words.size();
  }
  EXPECT_GT(words, 0u);
}

TEST_F(WhisperRecognition, FindsTheLanguageAndHearsNothingInNothing) {
  const auto found = recogniser_->transcribe(sound(16'000), {}, {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->language.size(), 2u);
  for (const size_t samples : {0u, 1u, 100u}) {
    const auto nothing = recogniser_->transcribe(sound(samples), {.language = "en"}, {});
    ASSERT_TRUE(nothing.has_value());
    EXPECT_TRUE(nothing->segments.empty());
  }
}

TEST_F(WhisperRecognition, RefusesWhatItCannot) {
  const auto error_of = [&](const TranscribeOptions& options) {
    const auto transcript = recogniser_->transcribe(sound(1600), options, {});
    EXPECT_FALSE(transcript.has_value());
    EXPECT_FALSE(recogniser_->start(options).has_value());
    return transcript ? Error{} : transcript.error();
  };
  EXPECT_EQ(error_of({.boost = {"syrinx"}}).code, Code::kUnsupported);
  EXPECT_EQ(error_of({.beam = 4}).code, Code::kUnsupported);
  EXPECT_EQ(error_of({.voice = {.threshold = 0.4}}).code, Code::kNotFound) << "there is no voice activity model";
  RecogniserOptions of_transducers{.files = {.family = RecogniserFamily::kWhisper}, .threads = 1, .look_ahead = 1};
  EXPECT_EQ(Recogniser::load(of_transducers).error().code, Code::kUnsupported);
  EXPECT_EQ(error_of({.language = "xx"}).message,
            "'tiny' does not know the language 'xx'; give a code such as en, de or zh, or leave it out");
  const auto stopped = recogniser_->transcribe(sound(16'000), {.language = "en"}, [](double) { return false; });
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
}

// Words of a segment make its text again, whatever is written without blanks.
TEST_F(WhisperRecognition, WordsJoinToTheText) {
  whisper::Tokens tokens;
  tokens.end_of_text = 500;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {" a", " cold", "-hearted", " man,", " 3", ".5", " or", " 20", "%", " of", " it"},
           {"\u4f60", "\u597d", " hello", " world", "\u4e16"},
           {" one", " ", "two ", "three", ""}}) {
    whisper::Segment segment;
    int32_t id = 0;
    for (const std::string& word : words) {
      segment.text += word;
      segment.words.push_back({.text = word, .tokens = {id++}});
    }
    const TranscriptSegment result = transcript_segment(segment, tokens);
    std::string text;
    for (const TranscriptWord& word : result.words) append_word(text, word);
    EXPECT_EQ(text, result.text);
    EXPECT_EQ(result.words[1].tokens.size(), 1u);
  }
}

// The sizes of the pushes change nothing.
TEST_F(WhisperRecognition, StreamsTheSameInAnyPieces) {
  const std::vector<float> samples = sound(50'000);
  const std::vector<std::string> whole = stream(samples, samples.size());
  EXPECT_GT(whole.size(), 2u);
  EXPECT_EQ(stream(samples, 1000), whole);
  EXPECT_EQ(stream(samples, 11'200), whole);
}

// With voice activity: silence ends a segment, and its last half second belongs to the next one, which may have begun
// by then.
TEST_F(WhisperRecognition, VoiceEndsSegments) {
  load(write_noise_detector((folder_ / "voice.bin").string()));

  constexpr size_t kSilence = 44'800, kSpeech = 55'900, kEnd = 56'000;  // of a step
  std::vector<float> samples = sound(80'000);
  std::fill(samples.begin() + kSilence, samples.begin() + kSpeech, 0.0f);
  auto started = recogniser_->start({.language = "en"});
  ASSERT_TRUE(started.has_value());
  std::vector<RecognitionEvent> events;
  ASSERT_TRUE((*started)->push(std::span(samples).first(kEnd - 1), events).has_value());
  EXPECT_TRUE(std::ranges::none_of(events, &RecognitionEvent::is_final));
  ASSERT_TRUE((*started)->push(std::span(samples).subspan(kEnd - 1), events).has_value());
  ASSERT_TRUE((*started)->finish(events).has_value());
  std::vector<TranscriptSegment> finals;
  for (const RecognitionEvent& event : events)
    if (event.is_final) finals.push_back(event.result);
  ASSERT_EQ(finals.size(), 2u);
  EXPECT_GE(finals[1].start_s, (kEnd - WhisperStream::kPrerollSamples) / 16'000.0);
  EXPECT_LT(finals[1].start_s, kEnd / 16'000.0);
  for (const TranscriptSegment& segment : finals) {
    size_t tokens = 0;
    for (const TranscriptWord& word : segment.words) tokens += word.tokens.size();
    EXPECT_EQ(segment.tokens.size(), tokens);
  }
}

// Where an utterance is as long as it may be, what is not yet certain is left to the next one.
TEST_F(WhisperRecognition, LengthCutsBehindCommittedWords) {
  auto started = recogniser_->start({.language = "en", .endpoints = {.max_utterance_s = 2}});
  ASSERT_TRUE(started.has_value());
  std::vector<RecognitionEvent> events;
  ASSERT_TRUE((*started)->push(sound(80'000), events).has_value());
  ASSERT_TRUE((*started)->finish(events).has_value());
  std::vector<RecognitionEvent> finals;
  std::ranges::copy_if(events, std::back_inserter(finals), &RecognitionEvent::is_final);
  ASSERT_GE(finals.size(), 2u);
  for (size_t i = 0; i < finals.size(); ++i) {
    EXPECT_EQ(finals[i].segment, i);
    EXPECT_EQ(finals[i].stable_bytes, finals[i].result.text.size());
  }
  EXPECT_LT(finals[0].result.end_s, 1.4);  // not at the step that cut
  EXPECT_LT(finals[1].result.start_s, 2.0);
  EXPECT_GE(finals[1].result.start_s, finals[0].result.end_s - 0.1);
}

TEST_F(WhisperRecognition, CommitsWhenAsked) {
  auto started = recogniser_->start({.language = "en"});
  ASSERT_TRUE(started.has_value());
  std::vector<RecognitionEvent> events;
  ASSERT_TRUE((*started)->commit(events).has_value());
  EXPECT_TRUE(events.empty());
  ASSERT_TRUE((*started)->push(sound(9000), events).has_value());
  ASSERT_TRUE((*started)->commit(events).has_value());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].is_final);
  EXPECT_EQ(events[0].stable_bytes, events[0].result.text.size());
  ASSERT_TRUE((*started)->push(sound(9000), events).has_value());
  ASSERT_TRUE((*started)->finish(events).has_value());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].segment, 1u);
  EXPECT_GE(events[1].result.start_s, 9000.0 / 16'000);
}

}  // namespace
}  // namespace syrinx
