// What the parameters of turn detection change: each test fails where its parameter is not heeded.
#include <fmt/format.h>

#include "tests/server/hearing_fixture.h"

namespace syrinx::server::realtime {
namespace {

using testing::Contains;
using testing::Not;

std::string server_vad(const std::string& fields) {
  return R"({"transcription":{},"turn_detection":{"type":"server_vad","silence_duration_ms":200,)" + fields + "}}";
}

// Somebody speaks, and has ended.
std::vector<float> a_turn() {
  std::vector<float> sound = noise(0.6);
  sound.resize(sound.size() + silence(0.6).size());
  return sound;
}

// The client decides itself what is answered, and when.
TEST_F(HearingTest, WithoutCreateResponseATurnIsHeardAndNotAnswered) {
  const auto answers = std::make_shared<FixedAnswer>("You said it.");
  start(server_vad(R"("create_response":false)"), {.speech = speech_, .replies = answers, .answers_turns = true});
  append(a_turn());
  EXPECT_THAT(hear_until(kCompleted), Not(Contains("response.created")));
  nothing_comes();
  EXPECT_TRUE(answers->asked.empty());
  say(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
  hear_until("response.done");
  ASSERT_EQ(answers->asked.size(), 1U);
  EXPECT_EQ(answers->asked[0].turns.back().text, "beep");
  update(server_vad(R"("create_response":true)"));
  append(a_turn());
  hear_until("response.done");
  EXPECT_EQ(answers->asked.size(), 2U);
}

// It is heard all the same, and what it says is not answered: somebody speaks already.
TEST_F(HearingTest, WithoutInterruptResponseWhoSpeaksDoesNotEndIt) {
  engine_->act.chunks = SIZE_MAX;
  const auto answers = std::make_shared<FixedAnswer>("A long story.");
  start(server_vad(R"("interrupt_response":false)"), {.speech = speech_, .replies = answers, .answers_turns = true});
  say(R"({"type":"response.create"})");
  hear_until("response.output_audio.delta");
  append(a_turn());
  const auto events = hear_until(kCompleted);
  EXPECT_THAT(events, Contains("input_audio_buffer.speech_started"));
  EXPECT_THAT(events, Not(Contains("response.done")));
  EXPECT_EQ(hear_until("response.output_audio.delta").size(), 1U);  // of the same response, which goes on
  say(R"({"type":"response.cancel"})");
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status_details", "reason"}), "client_cancelled");
  nothing_comes();
  EXPECT_EQ(answers->asked.size(), 1U);
}

// A detector that is sure of nothing: what it says of noise is speech by one threshold, and none by another.
class ThresholdTest : public HearingTest {
 protected:
  // The least and the greatest probability that it gives the windows of a sound.
  std::pair<double, double> probabilities(const std::vector<float>& sound) const {
    std::vector<float> heard;
    StreamResampler::create(kRateHz, kRecognitionRateHz)->push(sound, heard);
    silero::SpeechDetector detector(recognition_->voice_activity(), {});
    silero::VadScratch scratch;
    std::vector<silero::SpeechEvent> events;
    std::pair<double, double> found = {1, 0};
    for (size_t at = 0; at + silero::kWindowSamples <= heard.size(); at += silero::kWindowSamples) {
      detector.push(std::span(heard).subspan(at, silero::kWindowSamples), scratch, events);
      found.first = std::min<double>(found.first, detector.probability());
      found.second = std::max<double>(found.second, detector.probability());
    }
    return found;
  }
};

TEST_F(ThresholdTest, WhatCountsAsSpeechIsForTheClientToSay) {
  detect(2, /*gain=*/1);
  const auto [least, most] = probabilities(noise(0.6));
  ASSERT_LT(0.05, least);
  ASSERT_LT(most, 0.4);  // nobody who has said nothing hears speech there
  start(server_vad(fmt::format(R"("threshold":{})", most + 0.05)));
  append(noise(0.6));
  refused(kCommit, "null", "0 ms of a turn that has begun");
  update(server_vad(fmt::format(R"("threshold":{})", least - 0.02)));
  append(noise(0.6));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(recogniser_->threshold.load(), least - 0.02);  // whose stream is told the same
}

// No model here judges the sense: how eager one is to answer is how short a silence ends the turn.
TEST_F(HearingTest, EagernessIsTheSilenceBehindATurn) {
  std::vector<float> sound = noise(0.6);
  sound.resize(sound.size() + silence(2).size());
  const std::vector<std::pair<std::string, double>> silences_ms = {{R"(,"eagerness":"high")", 400},
                                                                   {R"(,"eagerness":"medium")", 700},
                                                                   {R"(,"eagerness":"auto")", 700},
                                                                   {"", 700},
                                                                   {R"(,"eagerness":"low")", 1200}};
  for (const auto& [eagerness, silence_ms] : silences_ms) {
    start(R"({"transcription":{},"turn_detection":{"type":"semantic_vad")" + eagerness + "}}");
    append(sound);
    hear_until("input_audio_buffer.speech_stopped");
    EXPECT_EQ(*last_.find("audio_end_ms")->whole(), first_speech_ms(sound, silence_ms).second) << eagerness;
    hear_until(kCompleted);
    leave();
  }
}

TEST_F(HearingTest, OtherEagernessIsRefusedByItsName) {
  start(R"({"turn_detection":{"type":"semantic_vad","eagerness":"low"}})");
  EXPECT_EQ(text_in({"session", "audio", "input", "turn_detection", "type"}), "semantic_vad");
  EXPECT_EQ(text_in({"session", "audio", "input", "turn_detection", "eagerness"}), "low");
  refused(R"({"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"semantic_vad",)"
          R"("eagerness":"keen"}}}}})",
          "audio.input.turn_detection.eagerness", "low, medium, high or auto");
}

}  // namespace
}  // namespace syrinx::server::realtime
