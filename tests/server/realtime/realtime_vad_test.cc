// Effects of the parameters of turn detection: each test fails where its parameter is ignored.
#include <fmt/format.h>

#include <array>

#include "tests/server/realtime/hearing_fixture.h"

namespace syrinx::server::realtime {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string server_vad(const std::string& fields) {
  return R"({"transcription":{},"turn_detection":{"type":"server_vad","silence_duration_ms":200,)" + fields + "}}";
}

// Speech, and the silence behind it.
std::vector<float> a_turn() {
  std::vector<float> sound = noise(0.6);
  sound.resize(sound.size() + silence(0.6).size());
  return sound;
}

// Such models take no turn detection, so their clients say nothing of it and find the turns themselves.
TEST_F(HearingTest, ModelWithoutTurnsExpectsCommits) {
  const auto turns = [&] { return text_in({"session", "audio", "input", "turn_detection", "type"}); };
  start(R"({"transcription":{"model":"gpt-realtime-whisper"}})");
  EXPECT_EQ(turns(), "(nothing)");
  append(noise(0.6));
  append(silence(0.6));
  say(kCommit);
  EXPECT_EQ(hear(), "input_audio_buffer.committed");
  hear_until(kCompleted);
  update(R"({"transcription":{"model":"whisper-1"}})");
  EXPECT_EQ(turns(), "server_vad");
  update(R"({"transcription":{"model":"gpt-live-transcribe"},"turn_detection":{"type":"semantic_vad"}})");
  EXPECT_EQ(turns(), "semantic_vad");
  update(R"({"transcription":{"model":"whisper-1"},"turn_detection":null})");
  update(R"({"transcription":{"model":"gpt-4o-transcribe"}})");
  EXPECT_EQ(turns(), "(nothing)");
  leave();
  start("{}", {.asked_model = "gpt-live-transcribe-2026-03-20"});
  EXPECT_EQ(turns(), "(nothing)");
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
TEST_F(HearingTest, WithoutInterruptResponseSpeechEndsNothing) {
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

TEST_F(ThresholdTest, ClientSetsTheSpeechThreshold) {
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

// A `turn_detection` that is refused: the field that the error names, behind the form's own prefix, and what is asked
// for instead.
struct RefusedTurns {
  const char* turns;
  const char* param;
  const char* sentence;
};
constexpr const char* kOrNull = "must be null, or an object whose 'type' is server_vad or semantic_vad";
constexpr std::array kRefusedTurns = {
    RefusedTurns{R"("server_vad")", "", kOrNull},
    RefusedTurns{R"(["server_vad"])", "", kOrNull},
    RefusedTurns{R"({"threshold":0.5})", "", kOrNull},
    RefusedTurns{R"({"type":1})", "", kOrNull},
    RefusedTurns{R"({"silence_duration_ms":900,"type":"server_vad","threshold":7})", ".threshold", "from 0.01 to 1"},
    RefusedTurns{R"({"type":"server_vad","threshold":0.009})", ".threshold", "must be a number from 0.01 to 1"},
    RefusedTurns{R"({"type":"server_vad","threshold":1.001})", ".threshold", "must be a number from 0.01 to 1"},
    RefusedTurns{R"({"type":"server_vad","threshold":"0.5"})", ".threshold", "must be a number from 0.01 to 1"},
    RefusedTurns{R"({"type":"server_vad","prefix_padding_ms":-1})", ".prefix_padding_ms", "a number from 0 to 5000"},
    RefusedTurns{R"({"type":"server_vad","prefix_padding_ms":5001})", ".prefix_padding_ms", "a number from 0 to 5000"},
    RefusedTurns{R"({"type":"server_vad","prefix_padding_ms":true})", ".prefix_padding_ms", "a number from 0 to 5000"},
    RefusedTurns{R"({"type":"server_vad","silence_duration_ms":-1})", ".silence_duration_ms", "from 0 to 10000"},
    RefusedTurns{R"({"type":"server_vad","silence_duration_ms":10001})", ".silence_duration_ms", "from 0 to 10000"},
    RefusedTurns{R"({"type":"server_vad","silence_duration_ms":"500"})", ".silence_duration_ms", "from 0 to 10000"},
    RefusedTurns{R"({"type":"server_vad","idle_timeout_ms":4999})", ".idle_timeout_ms", "a number from 5000 to 30000"},
    RefusedTurns{R"({"type":"server_vad","idle_timeout_ms":30001})", ".idle_timeout_ms", "a number from 5000 to 30000"},
    RefusedTurns{R"({"type":"server_vad","idle_timeout_ms":{}})", ".idle_timeout_ms", "a number from 5000 to 30000"},
    RefusedTurns{R"({"type":"server_vad","create_response":1})", ".create_response", "must be true or false"},
    RefusedTurns{R"({"type":"server_vad","interrupt_response":"no"})", ".interrupt_response", "must be true or false"},
    RefusedTurns{R"({"type":"semantic_vad","create_response":"yes"})", ".create_response", "must be true or false"},
    RefusedTurns{R"({"type":"semantic_vad","interrupt_response":0})", ".interrupt_response", "must be true or false"},
    RefusedTurns{R"({"type":"semantic_vad","eagerness":700})", ".eagerness", "must be a text"},
};

// The dialects have the object in two places, which the error names.
class TurnFieldsTest : public HearingTest, public testing::WithParamInterface<Dialect> {
 protected:
  bool is_beta() const { return GetParam() == Dialect::kBeta; }
  void set_turns(const std::string& turns, const std::string& event_id) {
    const std::string session =
        is_beta() ? R"({"turn_detection":)" + turns + "}" : R"({"audio":{"input":{"turn_detection":)" + turns + "}}}";
    say(R"({"type":"session.update","event_id":")" + event_id + R"(","session":)" + session + "}");
  }
  // As `session.updated` has it.
  std::string turns() const {
    return is_beta() ? text_in({"session", "turn_detection"})
                     : text_in({"session", "audio", "input", "turn_detection"});
  }
};

INSTANTIATE_TEST_SUITE_P(Dialects, TurnFieldsTest, testing::Values(Dialect::kReleased, Dialect::kBeta),
                         [](const auto& each) { return each.param == Dialect::kBeta ? "Beta" : "Released"; });

TEST_P(TurnFieldsTest, RefusalNamesFieldOutOfRange) {
  start(server_vad(R"("threshold":0.25)"), {.dialect = GetParam()});
  const std::string before = turns();
  const std::string place = is_beta() ? "turn_detection" : "audio.input.turn_detection";
  for (size_t i = 0; i < kRefusedTurns.size(); ++i) {
    const RefusedTurns& each = kRefusedTurns[i];
    set_turns(each.turns, fmt::format("event {}", i));
    ASSERT_EQ(hear(), "error") << each.turns;
    EXPECT_EQ(text_in({"error", "param"}), place + each.param) << each.turns;
    EXPECT_THAT(text_in({"error", "message"}), HasSubstr(fmt::format("'turn_detection{}'", each.param))) << each.turns;
    EXPECT_THAT(text_in({"error", "message"}), HasSubstr(each.sentence)) << each.turns;
    EXPECT_EQ(text_in({"error", "event_id"}), fmt::format("event {}", i)) << each.turns;
    EXPECT_EQ(text_in({"error", "type"}), "invalid_request_error") << each.turns;
  }
  say(R"({"type":"session.update","session":{}})");
  EXPECT_EQ(hear(), "session.updated");
  EXPECT_EQ(turns(), before);  // of which the good fields of a bad object are none
  EXPECT_THAT(before, HasSubstr(R"("threshold":0.25)"));
}

TEST_P(TurnFieldsTest, TheLimitsThemselvesAreTaken) {
  start(kManual, {.dialect = GetParam()});
  for (const char* fields :
       {R"("threshold":0.01,"prefix_padding_ms":0,"silence_duration_ms":0,"idle_timeout_ms":5000)",
        R"("threshold":1.0,"prefix_padding_ms":5000,"silence_duration_ms":10000,"idle_timeout_ms":30000)"}) {
    for (const char* flags : {R"("create_response":false,"interrupt_response":true)",
                              R"("create_response":true,"interrupt_response":false)"}) {
      const std::string whole = fmt::format(R"({{"type":"server_vad",{},{}}})", fields, flags);
      set_turns(whole, "mine");
      EXPECT_EQ(hear(), "session.updated") << whole;
      EXPECT_EQ(turns(), whole);
    }
  }
  set_turns(R"({"type":"server_vad","threshold":null,"prefix_padding_ms":null,"silence_duration_ms":null,)"
            R"("idle_timeout_ms":null,"create_response":null,"interrupt_response":null})",
            "mine");
  EXPECT_EQ(hear(), "session.updated");
  EXPECT_EQ(turns(), R"({"type":"server_vad","threshold":0.5,"prefix_padding_ms":300,"silence_duration_ms":500,)"
                     R"("idle_timeout_ms":null,"create_response":true,"interrupt_response":true})");
}

}  // namespace
}  // namespace syrinx::server::realtime
