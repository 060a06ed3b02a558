// Input of a realtime session: audio in, turns and their words out, without a socket.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "engine/families/whisper/whisper_family.h"
#include "server/http/base64.h"
#include "tests/server/host/job_run.h"
#include "tests/server/realtime/hearing_fixture.h"

namespace syrinx::server::realtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(HearingTest, CommittedAudioIsTranscribed) {
  start(kManual);
  append(beeps({0.3, 0.9}, 1.5, kRateHz));
  say(kCommit);
  const auto events = hear_until(kCompleted);
  EXPECT_THAT(std::vector(events.begin(), events.begin() + 3),
              ElementsAre("input_audio_buffer.committed", "conversation.item.added", "conversation.item.done"));
  EXPECT_EQ(events[3], kDelta);
  EXPECT_EQ(text_in({"transcript"}), "beep beep");
  EXPECT_EQ(text_in({"usage", "seconds"}), "1.5");
  const std::string id = text_in({"item_id"});
  say(R"({"type":"conversation.item.retrieve","item_id":")" + id + R"("})");
  EXPECT_EQ(hear(), "conversation.item.retrieved");
  EXPECT_EQ(text_in({"item", "content", "transcript"}), "beep beep");
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep");
  EXPECT_TRUE(slots_are_busy(0));  // behind its last turn the slot is for others
  EXPECT_THAT(metrics_.text(), HasSubstr("direction=\"in\"} 2\n"));
  // One for three words of a turn.
  EXPECT_THAT(metrics_.text(), testing::ContainsRegex("syrinx_time_to_first_word_seconds_count[{]model=[^}]*[}] 2\n"));
}

TEST_F(HearingTest, TurnsAreFoundByVoice) {
  start(kDetected);
  std::vector<float> sound = silence(0.5);
  for (const auto& part : {noise(0.6), silence(0.6)}) sound.insert(sound.end(), part.begin(), part.end());
  append(sound);
  const auto [start_ms, end_ms] = first_speech_ms(sound);
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  const std::string item = text_in({"item_id"});
  EXPECT_EQ(*last_.find("audio_start_ms")->whole(), std::max(start_ms - 100, int64_t{0}));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_stopped");
  EXPECT_EQ(*last_.find("audio_end_ms")->whole(), end_ms);
  EXPECT_EQ(text_in({"item_id"}), item);
  EXPECT_EQ(hear(), "input_audio_buffer.committed");
  auto events = hear_until(kCompleted);
  events.erase(std::unique(events.begin(), events.end()), events.end());  // the words come in one delta or in several
  EXPECT_THAT(events, ElementsAre("conversation.item.added", "conversation.item.done", kDelta, kCompleted));
  EXPECT_EQ(text_in({"transcript"}), "beep");
  EXPECT_EQ(text_in({"item_id"}), item);
  append(silence(1));
  append(noise(0.3));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  say(kCommit);  // in the middle of it
  EXPECT_EQ(hear(), "input_audio_buffer.committed");
  hear_until(kCompleted);
}

TEST_F(HearingTest, SpeechInterruptsAndIsAnswered) {
  engine_->act.chunks = 100000;
  const auto answers = std::make_shared<FixedAnswer>("You said it.");
  start(kDetected, {.speech = speech_, .replies = answers, .answers_turns = true});
  say(R"({"type":"response.create","response":{"input":[{"type":"message","role":"user","content":[)"
      R"({"type":"input_text","text":"A long story."}]}]}})");
  hear_until("response.output_audio.delta");
  append(noise(0.6));
  hear_until("input_audio_buffer.speech_started");
  const auto events = hear_until("response.done");
  EXPECT_THAT(events, testing::Not(testing::Contains("response.output_audio.delta")));
  EXPECT_EQ(text_in({"response", "status_details", "reason"}), "turn_detected");
  append(silence(0.6));
  hear_until("response.output_audio_transcript.delta");
  EXPECT_EQ(text_in({"delta"}), "You said it.");
  ASSERT_EQ(answers->asked.size(), 2u);
  EXPECT_EQ(answers->asked[1].turns.back().text, "beep");
}

TEST_F(HearingTest, WhereNoSlotIsFreeTheClientIsTold) {
  auto taken = slots_.try_take();
  start(kManual);
  append(beeps({0.1}, 0.5, kRateHz));
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "no_free_slot");
  EXPECT_EQ(text_in({"error", "event_id"}), "mine");
  say(kCommit);
  hear_until(kFailed);
  EXPECT_EQ(text_in({"error", "code"}), "no_free_slot");
  taken.reset();
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep");
}

TEST_F(HearingTest, LongSoundTakesRoom) {
  recogniser_->still = true;
  start(kManual, {.kb_per_s = 1e6});
  std::atomic<size_t> held{0};
  const auto alive = std::make_shared<int>();
  session_->messages()->set_room([&held, alive]() -> MessageStream::Room {
    return [&held, alive](size_t bytes) {
      if (bytes > 2'000'000) return false;
      held = bytes;
      return true;
    };
  });
  const auto before = alive.use_count();
  append(beeps({0.1}, 9, kRateHz));
  nothing_comes();
  EXPECT_EQ(held, 0U);
  append(silence(9));
  nothing_comes();
  EXPECT_GT(held, 17U * kRecognitionRateHz * sizeof(float));
  EXPECT_GT(alive.use_count(), before);
  append(silence(30));
  ASSERT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "uploads_full");
  recogniser_->still = false;
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"usage", "seconds"}), "18.0");
  nothing_comes();
  EXPECT_EQ(alive.use_count(), before);
}

// The tone is quieter than a beep, and noise would be louder.
TEST_F(HearingTest, CutTextGoesOnBehindARefusal) {
  start(kManual, {.max_backlog_s = 3, .max_clip_s = 3, .kb_per_s = 1e6});
  std::vector<float> tone(static_cast<size_t>(6 * kRateHz));
  for (size_t i = 0; i < tone.size(); ++i) tone[i] = 0.03f * std::sin(0.1f * static_cast<float>(i));
  const std::string text = pcm_base64(tone);
  append(text.substr(0, 64001));
  append(text.substr(64001, 200001));
  ASSERT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "audio_backlog");
  append(text.substr(264002, 60001));
  append(text.substr(324003, 20001));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "");
}

TEST_F(HearingTest, CutBase64IsTranscribed) {
  start(kManual);
  const std::string text = pcm_base64(beeps({0.3, 0.9}, 1.5, kRateHz));
  for (size_t at = 0; at < text.size(); at += 10003) append(text.substr(at, 10003));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep beep");
  EXPECT_EQ(text_in({"usage", "seconds"}), "1.5");
}

TEST_F(HearingTest, ATurnThatPausesGivesItsSlotUpAndGoesOn) {
  start(kManual, {.ear_times = {.open_idle = std::chrono::milliseconds(1000)}});
  append(beeps({0.1}, 0.5, kRateHz));
  EXPECT_TRUE(streams_are(1));
  EXPECT_TRUE(slots_are_busy(0));
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep beep");
  EXPECT_EQ(text_in({"usage", "seconds"}), "1.0");
}

TEST_F(HearingTest, RefusalNamesTheParameter) {
  start(kManual, {.strict = true, .max_clip_s = 10});
  const auto update = [](const std::string& input) {
    return R"({"type":"session.update","session":{"audio":{"input":)" + input + "}}}";
  };
  const auto sound = [](const std::string& audio) {
    return R"({"type":"input_audio_buffer.append","audio":")" + audio + "\"}";
  };
  refused(sound("=AAA"), "audio", "base64");
  refused(sound("A*AA"), "audio", "base64");
  refused(R"({"type":"input_audio_buffer.append"})", "audio", "base64");
  refused(sound(pcm_base64(silence(10.5))), "audio", "more than 10 s");
  refused(kCommit, "null", "0 ms");
  refused(update(R"({"noise_reduction":{"type":"mid_field"}})"), "audio.input.noise_reduction", "near_field");
  refused(update(R"({"noise_reduction":"near_field"})"), "audio.input.noise_reduction", "an object");
  refused(update(R"({"transcription":{"model":"gpt-9"}})"), "audio.input.transcription.model", "gpt-9");
  refused(update(R"({"transcription":{"prompt":")" + std::string(16'385, 'x') + "\"}}"),
          "audio.input.transcription.prompt", "has 16385 bytes; give at most 16384");
  refused(update(R"({"turn_detection":{"type":"loud"}})"), "audio.input.turn_detection", "server_vad");
  for (const char* threshold : {"2", "0"})
    refused(update(R"({"turn_detection":{"type":"server_vad","threshold":)" + std::string(threshold) + "}}"),
            "audio.input.turn_detection.threshold", "0.01");
  append(beeps({0.1}, 0.5, kRateHz));
  say(R"({"type":"input_audio_buffer.clear"})");
  EXPECT_EQ(hear(), "input_audio_buffer.cleared");
  refused(kCommit, "null", "0 ms");
}

// docs/server.md names them: clients send them to any server.
TEST_F(HearingTest, UnusedFieldsAreAcceptedNotRepeated) {
  start(kManual);
  say(R"({"type":"session.update","session":{"tools":[{"type":"function","name":"f"}],"tool_choice":"auto",
          "tracing":"auto","truncation":"auto","no such field":1,
          "audio":{"input":{"transcription":{"delay":"low"}}}}})");
  EXPECT_EQ(hear(), "session.updated") << last_.dump();
  for (const char* field : {"tools", "tool_choice", "tracing", "truncation", "no such field", "delay"})
    EXPECT_THAT(last_.dump(), testing::Not(HasSubstr(field)));
  for (const char* noise : {R"({"type":"near_field"})", R"({"type":"far_field"})", "null"}) {
    update(R"({"noise_reduction":)" + std::string(noise) + "}");
    EXPECT_EQ(text_in({"session", "audio", "input", "noise_reduction"}), "null");
  }
  refused(R"({"type":"output_audio_buffer.clear"})", "type", "there is no event 'output_audio_buffer.clear'");
}

TEST_F(HearingTest, HintsThatNothingHeedsMayBeIgnored) {
  recogniser_->favours_words = false;
  family_ = &transducer_family();
  detect(0);
  const auto update = [](const char* hint) {
    return R"({"type":"session.update","session":{"audio":{"input":{"transcription":{)" + std::string(hint) + "}}}}}";
  };
  start(kManual, {.strict = true});
  refused(update(R"("prompt":"x")"), "audio.input.transcription.prompt", "strict");
  refused(update(R"("keywords":["x"])"), "audio.input.transcription.keywords", "strict");
  leave();
  start(R"({"turn_detection":null,"transcription":{"prompt":"x","keywords":["Syrinx"]}})");
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep");
}

// Each turn's stream is told it.
TEST_F(HearingTest, PromptReachesEveryTurn) {
  start(R"({"turn_detection":null,"transcription":{"prompt":"Syrinx, Pan"}})", {.strict = true});
  EXPECT_EQ(text_in({"session", "audio", "input", "transcription", "prompt"}), "Syrinx, Pan");
  for (int turn = 0; turn < 2; ++turn) {
    recogniser_->prompt.clear();
    append(beeps({0.1}, 0.5, kRateHz));
    say(kCommit);
    hear_until(kCompleted);
    EXPECT_EQ(recogniser_->prompt, "Syrinx, Pan");
  }
}

TEST_F(HearingTest, IgnoredHintsAreNamedAndLogged) {
  recogniser_->favours_words = false;
  family_ = &transducer_family();
  detect(0);
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start(R"({"turn_detection":null,"transcription":{"prompt":"x","keywords":["Syrinx"]}})", {}, &lines);
    EXPECT_EQ(text_in({"session", "ignored"}),
              R"(["audio.input.transcription.prompt","audio.input.transcription.keywords"])");
    say(R"({"type":"session.update","session":{}})");
    EXPECT_EQ(hear(), "session.updated");
    EXPECT_EQ(text_in({"session", "ignored"}), "(nothing)");
    leave();
  });
  EXPECT_THAT(log, HasSubstr(R"("event":"session_update")"));
  EXPECT_THAT(log, HasSubstr(R"("ignored":["audio.input.transcription.prompt")"));
}

// A transducer has as many streams as there are slots: one that a check took would be somebody's who holds a slot.
TEST_F(HearingTest, ChecksTakeNoStream) {
  start(R"({"turn_detection":null,"transcription":{"language":"de","keywords":["Syrinx"]}})");
  refused(R"({"type":"session.update","session":{"audio":{"input":{"transcription":{"language":"xx"}}}}})",
          "audio.input.transcription.language", "xx");
  EXPECT_EQ(recogniser_->streams, 0);
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(recogniser_->streams, 1);
}

// Knows languages by its own words for them alone.
class StrictRecogniser final : public FakeRecogniser {
 public:
  Status check_stream(const TranscribeOptions& options) const override {
    SYRINX_TRY_VOID(FakeRecogniser::check_stream(options));
    const bool is_known = options.language.empty() || std::find(known_languages.begin(), known_languages.end(),
                                                                options.language) != known_languages.end();
    if (!is_known) return fail(Code::kInvalidArgument, "'strict' was not taught '{}'", options.language);
    return {};
  }
};

class LanguageTest : public HearingTest {
 protected:
  void start_with(std::vector<std::string> model_knows, const std::vector<std::string>& operator_says) {
    const auto recogniser = std::make_shared<StrictRecogniser>();
    recogniser->known_languages = std::move(model_knows);
    const auto recognition =
        RecognitionModel::of({.recognition_languages = operator_says}, {.family = &whisper_family()}, recogniser);
    ASSERT_TRUE(recognition) << recognition.error().message;
    recognition_ = *recognition;
    start(kManual);
  }
  static std::string transcription(const std::string& language) {
    return R"({"turn_detection":null,"transcription":{"language":")" + language + "\"}}";
  }
  void expect_taken(const std::string& language) {
    update(transcription(language));
    EXPECT_EQ(text_in({"session", "audio", "input", "transcription", "language"}), language);
    append(beeps({0.1}, 0.5, kRateHz));
    say(kCommit);
    EXPECT_THAT(hear_until(kCompleted), testing::Not(testing::Contains(kFailed))) << language;
  }
  void expect_refused(const std::string& language, const char* code, const char* sentence) {
    refused(R"({"type":"session.update","session":{"audio":{"input":)" + transcription(language) + "}}}",
            "audio.input.transcription.language", sentence);
    EXPECT_EQ(text_in({"error", "code"}), code);
  }
};

TEST_F(LanguageTest, IsTakenWithACountryOrWithout) {
  ASSERT_NO_FATAL_FAILURE(start_with({"en", "de", "pt-BR"}, {}));
  for (const char* language : {"de", "de-DE", "EN_us", "pt", "auto"}) expect_taken(language);
  expect_refused("fr", "language_not_found", "'fr'");
  expect_refused("pt-PT", "language_not_found", "'pt-PT'");
}

TEST_F(LanguageTest, IsTheOnlyOneThatIsExpected) {
  ASSERT_NO_FATAL_FAILURE(start_with({"en", "de"}, {}));
  const auto taken = [&](const char* fields) {
    update(R"({"turn_detection":null,"transcription":{)" + std::string(fields) + "}}");
    return text_in({"session", "audio", "input", "transcription", "language"});
  };
  EXPECT_EQ(taken(R"("languages":["de"])"), "de");
  EXPECT_EQ(taken(R"("languages":["de"],"language":"en")"), "en");
  for (const char* open : {R"("languages":["de","en"])", R"("languages":[])", R"("languages":null)"})
    EXPECT_EQ(taken(open), "null");
  refused(R"({"type":"session.update","session":{"audio":{"input":{"transcription":{"languages":["fr"]}}}}})",
          "audio.input.transcription.language", "'fr'");
  refused(R"({"type":"session.update","session":{"audio":{"input":{"transcription":{"languages":"de"}}}}})",
          "audio.input.transcription.languages", "must be a list of at most 64 texts");
}

// For a model without a choice of languages.
TEST_F(LanguageTest, IsThatWhichTheOperatorLists) {
  ASSERT_NO_FATAL_FAILURE(start_with({}, {"en"}));
  for (const char* language : {"en", "en-US", "auto"}) expect_taken(language);
  expect_refused("de", "language_not_found", "'de'");
}

TEST_F(LanguageTest, IsRefusedWithUnknownModelLanguage) {
  ASSERT_NO_FATAL_FAILURE(start_with({}, {}));
  expect_refused("en", "language_not_found", "recognition_languages");
}

TEST_F(HearingTest, LongSilenceTriggersTheTimeout) {
  start(R"({"turn_detection":{"type":"server_vad","idle_timeout_ms":5000}})");
  clock_.advance_ns(int64_t{6} * 1'000'000'000);
  session_->messages()->poke();
  EXPECT_EQ(hear(), "input_audio_buffer.timeout_triggered");
  EXPECT_EQ(hear(), "input_audio_buffer.committed");
}

TEST(Base64, ComesBackAndNothingElseDoes) {
  for (size_t size = 0; size < 10; ++size) {
    std::vector<std::byte> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(37 * i + 200);
    EXPECT_EQ(decode_base64(base64(bytes)), bytes);
  }
  for (const char* text : {"A", "AAA", "AA=A", "A===", "====", "AB==", "AAB=", "AA A",
                           "AA\xFF"
                           "A"})
    EXPECT_FALSE(decode_base64(text)) << text;
}

}  // namespace
}  // namespace syrinx::server::realtime
