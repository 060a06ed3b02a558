// Streams through Whisper: pieces, pauses, endpoints.
#include "engine/families/whisper/whisper_stream.h"

#include <algorithm>

#include "tests/engine/recognition/noise_detector.h"
#include "whisper_recognition.h"

namespace syrinx {
namespace {

// The sizes of the pushes change nothing.
TEST_F(WhisperRecognition, StreamsTheSameInAnyPieces) {
  const std::vector<float> samples = sound(50'000);
  const std::vector<std::string> whole = stream(samples, samples.size());
  EXPECT_GT(whole.size(), 2u);
  EXPECT_EQ(stream(samples, 1000), whole);
  EXPECT_EQ(stream(samples, 11'200), whole);

  load(write_noise_detector((folder_ / "voice.bin").string()));
  std::vector<float> pauses = samples;
  std::fill(pauses.begin() + 14'000, pauses.begin() + 18'000, 0.0f);
  std::fill(pauses.begin() + 30'000, pauses.begin() + 42'000, 0.0f);
  const std::vector<std::string> parts = stream(pauses, pauses.size());
  EXPECT_GT(parts.size(), 2u);
  for (const size_t piece : {333u, 512u, 1000u, 11'200u}) EXPECT_EQ(stream(pauses, piece), parts) << piece;
}

// With voice activity: silence ends a segment, and its last half second belongs to the next one, which may have begun
// by then.
TEST_F(WhisperRecognition, VoiceEndsSegments) {
  load(write_noise_detector((folder_ / "voice.bin").string()));

  // The last window with sound ends at 45'056 at the latest, and 0.6 s later the segment is over.
  constexpr size_t kSilence = 44'800, kSpeech = 55'900, kEarliest = 44'544 + 9600, kEnd = 45'056 + 9728;
  std::vector<float> samples = sound(80'000);
  std::fill(samples.begin() + kSilence, samples.begin() + kSpeech, 0.0f);
  auto started = recogniser_->start({.language = "en"});
  ASSERT_TRUE(started.has_value());
  std::vector<RecognitionEvent> events;
  const auto is_over = [&] { return std::ranges::any_of(events, &RecognitionEvent::is_final); };
  ASSERT_TRUE((*started)->push(std::span(samples).first(kEarliest - 1), events).has_value());
  EXPECT_FALSE(is_over());
  ASSERT_TRUE((*started)->push(std::span(samples).first(kEnd).subspan(kEarliest - 1), events).has_value());
  EXPECT_TRUE(is_over());
  ASSERT_TRUE((*started)->push(std::span(samples).subspan(kEnd), events).has_value());
  ASSERT_TRUE((*started)->finish(events).has_value());
  std::vector<TranscriptSegment> finals;
  for (const RecognitionEvent& event : events)
    if (event.is_final) finals.push_back(event.result);
  ASSERT_EQ(finals.size(), 2u);
  EXPECT_GE(finals[1].start_s, (kEarliest - WhisperStream::kPrerollSamples) / 16'000.0);
  for (const TranscriptSegment& segment : finals) {
    size_t tokens = 0;
    for (const TranscriptWord& word : segment.words) tokens += word.tokens.size();
    EXPECT_EQ(segment.tokens.size(), tokens);
  }
}

// With a detector that is sure of silence: noise, and then a pause that has been decoded.
class WhisperPauseSteps : public WhisperRecognition {
 protected:
  static constexpr size_t kSpeechWindows = 24;

  void begin(const TranscribeOptions& options = {.language = "en"}) {
    load(write_noise_detector((folder_ / "voice.bin").string(), 4));
    auto started = recogniser_->start(options);
    ASSERT_TRUE(started.has_value()) << started.error().message;
    stream_ = std::move(*started);
    push(speech_);
    EXPECT_EQ(decodings(), 1u) << "a period has passed";
    size_t silent = 0;  // windows
    for (; decodings() < 2 && silent < 12; ++silent) push(std::vector<float>(silero::kWindowSamples));
    EXPECT_GE(silent * silero::kWindowSamples, WhisperStream::kPauseSamples);
    EXPECT_EQ(decodings(), 2u);
  }
  void push(std::span<const float> samples) { ASSERT_TRUE(stream_->push(samples, events_).has_value()); }
  size_t decodings() const { return recogniser_->steps().count(); }

  const std::vector<float> speech_ = sound(kSpeechWindows * silero::kWindowSamples);
  std::unique_ptr<RecognitionStream> stream_;
  std::vector<RecognitionEvent> events_;
};

// The end of the sound needs no other decoding, unless more has come.
TEST_F(WhisperPauseSteps, PauseIsDecodedOnce) {
  for (const bool goes_on : {false, true}) {
    events_.clear();
    begin();
    const std::string text = events_.empty() ? "" : events_.back().result.text;
    push(std::vector<float>(4000));
    EXPECT_EQ(decodings(), 2u) << "silence alone";
    if (goes_on) push(speech_);
    const size_t before = decodings();
    ASSERT_TRUE(stream_->finish(events_).has_value());
    EXPECT_EQ(decodings(), goes_on ? before + 1 : 2u);
    ASSERT_FALSE(events_.empty());
    EXPECT_TRUE(events_.back().is_final);
    if (!goes_on) {
      EXPECT_EQ(events_.back().result.text, text);
    }
  }
}

TEST_F(WhisperPauseSteps, PeriodOfSilenceMakesWordsStable) {
  begin({.language = "en", .endpoints = {.off = true}});
  ASSERT_FALSE(events_.empty());
  const std::string text = events_.back().result.text;
  push(std::vector<float>(WhisperStream::kPeriodSamples));
  EXPECT_EQ(decodings(), 2u);
  EXPECT_EQ(events_.back().result.text, text);
  EXPECT_EQ(events_.back().stable_bytes, text.size());
  EXPECT_FALSE(events_.back().is_final);
}

// A window of the model holds 30 s: the silence of a long pause must not fill it.
TEST_F(WhisperPauseSteps, LongPauseLeavesRoomForWords) {
  begin({.language = "en", .endpoints = {.off = true}});
  push(std::vector<float>(35 * 16'000));
  push(speech_);
  ASSERT_TRUE(stream_->finish(events_).has_value());
  ASSERT_FALSE(events_.empty());
  EXPECT_GT(events_.back().result.end_s, 35.0);
}

// A window that is not whole is not judged: it may be speech.
TEST_F(WhisperPauseSteps, CommitHearsTheRestOfAWindow) {
  begin();
  push(std::span(speech_).first(100));
  ASSERT_TRUE(stream_->commit(events_).has_value());
  EXPECT_EQ(decodings(), 3u);
}

// Silence is no part of an utterance's length.
TEST_F(WhisperRecognition, AnUtteranceBeginsWithItsSpeech) {
  load(write_noise_detector((folder_ / "voice.bin").string()));
  auto started = recogniser_->start({.language = "en", .endpoints = {.max_utterance_s = 4}});
  ASSERT_TRUE(started.has_value());
  std::vector<RecognitionEvent> events;
  ASSERT_TRUE((*started)->push(std::vector<float>(91'000), events).has_value());
  events.clear();  // the detector takes the first windows for voice
  ASSERT_TRUE((*started)->push(test::Draws(6).floats(48'000, -0.5, 0.5), events).has_value());
  ASSERT_FALSE(events.empty());
  EXPECT_TRUE(std::ranges::none_of(events, &RecognitionEvent::is_final)) << "3 s of 4";
  ASSERT_TRUE((*started)->finish(events).has_value());
  ASSERT_TRUE(events.back().is_final);
  EXPECT_EQ(events.back().reason, EndpointReason::kEnd);
}

// Where an utterance is as long as it may be, what is not yet certain is left to the next one.
TEST_F(WhisperRecognition, LengthCutsBehindCommittedWords) {
  auto started =
      recogniser_->start({.language = "en", .endpoints = {.silence_after_speech_s = 100, .max_utterance_s = 2}});
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
  EXPECT_EQ(finals[0].reason, EndpointReason::kLength);
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
  EXPECT_EQ(events[0].reason, EndpointReason::kCommit);
  ASSERT_TRUE((*started)->push(sound(9000), events).has_value());
  ASSERT_TRUE((*started)->finish(events).has_value());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].segment, 1u);
  EXPECT_GE(events[1].result.start_s, 9000.0 / 16'000);
}

}  // namespace
}  // namespace syrinx
