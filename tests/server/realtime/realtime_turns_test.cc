// Turns with a fault or a change in them: rules, format, transcription, recogniser, client.

#include "audio/g711.h"
#include "tests/server/host/job_run.h"
#include "tests/server/realtime/hearing_fixture.h"

namespace syrinx::server::realtime {
namespace {

using testing::HasSubstr;

constexpr Ear::Times kShort{.open_idle = std::chrono::milliseconds(1000), .idle = std::chrono::milliseconds(10)};

std::string mu_law_base64(const std::vector<float>& samples) {
  std::vector<int16_t> pcm(samples.size());
  PcmQuantizer().convert(samples, pcm);
  std::vector<std::byte> bytes;
  for (const int16_t sample : pcm) bytes.push_back(encode_mu_law(sample));
  return base64(bytes);
}

// Silence is below any threshold that may be set.
TEST_F(HearingTest, ATurnEndsAtALowThresholdToo) {
  detect(6);
  start(R"({"transcription":{},"turn_detection":{"type":"server_vad","threshold":0.1,"silence_duration_ms":200}})");
  append(noise(0.6));
  append(silence(0.6));
  hear_until("input_audio_buffer.speech_stopped");
}

TEST_F(HearingTest, RulesThatChangeInATurnHoldForTheNext) {
  detect(6);
  start(kDetected);
  append(noise(0.6));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  append(silence(0.1));
  update(R"({"turn_detection":{"type":"server_vad","silence_duration_ms":2000}})");
  append(silence(0.6));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_stopped");
  hear_until(kCompleted);
  append(noise(0.4));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  append(silence(1));
  say(kCommit);
  EXPECT_EQ(hear(), "input_audio_buffer.committed");  // a second of silence is not the end any more
  hear_until(kCompleted);
}

// The first update takes the detector away that began it, the second brings one that knows nothing of it.
TEST_F(HearingTest, ATurnThatNoDetectorFollowsIsOverWhereOneBegins) {
  detect(6);
  start(kDetected);
  append(noise(0.6));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  const std::string item = text_in({"item_id"});
  update(R"({"turn_detection":null})");
  say(R"({"type":"session.update","session":{"audio":{"input":)" + std::string(kDetected) + "}}}");
  EXPECT_THAT(hear_until("session.updated"), testing::Contains("input_audio_buffer.committed"));
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"item_id"}), item);
  EXPECT_TRUE(slots_are_busy(0));
  append(noise(0.4));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  EXPECT_NE(text_in({"item_id"}), item);
}

TEST_F(HearingTest, DetectionDropsShortAudioBefore) {
  detect(6);
  start(kManual);
  append(noise(0.05));
  update(kDetected);
  refused(kCommit, "null", "0 ms");
  EXPECT_TRUE(slots_are_busy(0));
}

// A new format brings out what the resampler holds; with it speech begins, in an update that ends detection.
TEST_F(HearingTest, SpeechThatAnUpdateBringsOutInterruptsByTheUpdatesRules) {
  TurnDetector detector(recognition_->voice_activity(), {}, 0);
  std::vector<float> heard;
  StreamResampler::create(kRateHz, kRecognitionRateHz)->push(noise(1), heard);
  size_t samples = 0;
  for (bool began = false; !began; samples += silero::kWindowSamples)
    began = detector.push(std::span(heard).subspan(samples, silero::kWindowSamples)).has_value();
  std::vector<float> sound = noise(1);
  sound.resize(samples * kRateHz / kRecognitionRateHz);

  engine_->act.chunks = 100000;
  start(kDetected, {.speech = speech_});
  say(R"({"type":"response.create","response":{"input":[{"type":"message","role":"user","content":[)"
      R"({"type":"input_text","text":"A long story."}]}]}})");
  hear_until("response.output_audio.delta");
  append(sound);
  say(R"({"type":"conversation.item.retrieve","item_id":"none"})");  // answered behind the sound
  EXPECT_THAT(hear_until("error"), testing::Not(testing::Contains("input_audio_buffer.speech_started")));
  say(R"({"type":"session.update","session":{"audio":{"input":{"format":{"type":"audio/pcmu"},)"
      R"("turn_detection":null}}}})");
  const auto events = hear_until("session.updated");
  EXPECT_THAT(events, testing::Contains("input_audio_buffer.speech_started"));
  EXPECT_THAT(events, testing::Not(testing::Contains("response.done")));
}

TEST_F(HearingTest, ATurnHasNoSoundFromBeforeThatWasCommittedByHand) {
  constexpr const char* kPadded =
      R"({"transcription":{},"turn_detection":{"type":"server_vad","prefix_padding_ms":5000}})";
  detect(6);
  start(kPadded);
  append(silence(1));
  update(R"({"turn_detection":null})");
  append(beeps({0.1}, 1, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  update(kPadded);
  append(noise(0.6));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  EXPECT_GE(*last_.find("audio_start_ms")->whole(), 2000);
}

TEST_F(HearingTest, AnEngineThatStartsNoStreamIsInTheLog) {
  recogniser_->start_fault = "the weights are gone";
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start(kManual, {}, &lines);
    append(beeps({0.1}, 0.5, kRateHz));
    EXPECT_TRUE(streams_are(1));
    EXPECT_TRUE(slots_are_busy(0));  // which the ear gives up by itself
    say(kCommit);
    hear_until(kFailed);
    leave();
  });
  EXPECT_THAT(log, HasSubstr("the weights are gone"));
}

TEST_F(HearingTest, ARecogniserThatBreaksFailsTheTurnAndNotTheSession) {
  recogniser_->breaks = true;
  start(kManual);
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  hear_until(kFailed);
  EXPECT_TRUE(slots_are_busy(0));
  recogniser_->breaks = false;
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep");
}

// Sound that nobody has heard yet counts, wherever it waits.
TEST_F(HearingTest, SoundThatWaitsForTheRecogniserIsBounded) {
  recogniser_->still = true;
  start(kManual, {.max_clip_s = 10});
  append(beeps({0.1}, 6, kRateHz));
  clock_.advance_ns(int64_t{60} * 1'000'000'000);
  say(R"({"type":"input_audio_buffer.append","audio":")" + pcm_base64(silence(6)) + "\"}");
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "audio_backlog");
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_rejected_total{reason=\"audio_backlog\"} 1\n"));
  recogniser_->still = false;
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"usage", "seconds"}), "6.0");
}

// As of who holds a button, speaks and lets it go.
TEST_F(HearingTest, AClipThatIsCommittedComesAtOnce) {
  start(kManual, {.kb_per_s = 1e6});  // the clock stands still
  append(beeps({0.1}, 11, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"usage", "seconds"}), "11.0");
  append(silence(30));
  append(silence(20));  // more than a minute in all
  ASSERT_EQ(hear_until("error").back(), "error");
  EXPECT_THAT(text_in({"error", "message"}), HasSubstr("more than 60 s"));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"usage", "seconds"}), "30.0");
  update(kDetected);  // where voice ends the turns, nobody has so much to say at once, and what came before is no debt
  append(silence(9));
  append(silence(2));
  ASSERT_EQ(hear_until("error").back(), "error");
  EXPECT_THAT(text_in({"error", "message"}), HasSubstr("with these 2.0 s they would be more than 10 s"));
}

// Or a session could be heard for ever as fast as it can be sent.
TEST_F(HearingTest, SwitchingDetectionKeepsTheBacklog) {
  start(kManual, {.max_clip_s = 20, .kb_per_s = 1e6});  // the clock stands still
  const auto switch_to = [&](const std::string& detection) {
    say(R"({"type":"session.update","session":{"audio":{"input":)" + detection + "}}}");
    hear_until("session.updated");
  };
  append(silence(19));
  say(R"({"type":"input_audio_buffer.clear"})");
  hear_until("input_audio_buffer.cleared");
  switch_to(kDetected);
  append(silence(9));
  switch_to(kManual);
  append(silence(2));
  ASSERT_EQ(hear_until("error").back(), "error");
  EXPECT_THAT(text_in({"error", "message"}), HasSubstr("with these 2.0 s they would be more than 20 s"));
  switch_to(kDetected);
  append(silence(2));
  ASSERT_EQ(hear_until("error").back(), "error");
  EXPECT_THAT(text_in({"error", "message"}), HasSubstr("with these 2.0 s they would be more than 10 s"));
}

// By the clock, from its coming until it is heard: what it waits in the recogniser for its turn counts, too.
TEST_F(HearingTest, SoundThatWaitsForTheRecogniserIsMeasured) {
  constexpr int64_t kSecond = 1'000'000'000;
  recogniser_->still = true;
  start(kManual, {.ear_times = {.open_idle = std::chrono::hours(1)}});  // a pause is a wait of its own
  clock_.advance_ns(5 * kSecond);
  append(beeps({0.1}, 0.5, kRateHz));
  const Stopwatch waited;
  while (waiting_samples_ == 0 && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
  EXPECT_GT(waiting_samples_, 7'000);
  clock_.advance_ns(3 * kSecond);
  recogniser_->still = false;
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(waiting_samples_, 0);
  ASSERT_GE(recogniser_->came_ns.size(), 1u);
  EXPECT_EQ(recogniser_->came_ns[0], 5 * kSecond);  // which the engine is told
  // The longest wait of the turn, which has less than a second.
  EXPECT_THAT(metrics_.text(), testing::ContainsRegex("syrinx_queue_delay_seconds_sum[{]model=[^}]*[}] 3\n"));
  EXPECT_THAT(metrics_.text(), testing::ContainsRegex("syrinx_queue_delay_seconds_count[{]model=[^}]*[}] 1\n"));
  // From its coming, as it came at once.
  EXPECT_THAT(metrics_.text(), testing::ContainsRegex("syrinx_time_to_first_word_seconds_sum[{]model=[^}]*[}] 3\n"));
}

// On no slot yet, so that all of it waits.
TEST_F(HearingTest, DroppedAudioDoesNotWait) {
  Ear ear(
      {.model = recognition_}, {.metrics = metrics_, .waiting_samples = &waiting_samples_}, [] {}, clock_);
  const auto options = std::make_shared<const TranscribeOptions>();
  const std::vector<float> sound(800);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ear.hear(1, options, sound));
  EXPECT_TRUE(ear.end(1));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(ear.hear(2, options, sound));
  EXPECT_EQ(waiting_samples_, 4000);
  EXPECT_TRUE(ear.drop(2));
  EXPECT_EQ(waiting_samples_, 2400);
  recogniser_->breaks = true;
  SlotWatch watch(clock_);
  EXPECT_ANY_THROW(ear.run(watch));
  EXPECT_TRUE(ear.is_broken());
  EXPECT_EQ(waiting_samples_, 0);
  EXPECT_EQ(ear.waiting_samples(), 0U);
}

// The client did not want its words, but an answer was due.
TEST_F(HearingTest, ATurnWithoutTranscriptionThatFailsIsToldOnce) {
  start(R"({"turn_detection":null,"transcription":null})",
        {.speech = speech_, .replies = std::make_shared<FixedAnswer>("You said it."), .answers_turns = true});
  const auto nothing_more = [this] {
    for (const std::string probe : {"first", "second"}) {
      say(R"({"type":"conversation.item.retrieve","item_id":"none","event_id":")" + probe + "\"}");
      EXPECT_EQ(hear(), "error");
      EXPECT_EQ(text_in({"error", "event_id"}), probe) << last_.dump();
    }
  };
  recogniser_->start_fault = "the weights are gone";
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  EXPECT_THAT(hear_until("error"), testing::Not(testing::Contains(kFailed)));
  EXPECT_EQ(text_in({"error", "type"}), "server_error");
  EXPECT_THAT(last_.dump(), testing::Not(HasSubstr("weights")));
  nothing_more();
  recogniser_->start_fault.clear();
  EXPECT_TRUE(slots_are_busy(0));
  const auto taken = slots_.try_take();
  append(beeps({0.1}, 0.5, kRateHz));
  EXPECT_EQ(hear(), "error");  // when it begins, and not again
  EXPECT_EQ(text_in({"error", "code"}), "no_free_slot");
  say(kCommit);
  hear_until("conversation.item.done");
  nothing_more();
}

// Looking for speech costs the same in silence, which nobody has to hear.
TEST_F(HearingTest, SilenceComesAtThePaceOfSpeechToo) {
  detect(6);
  start(kDetected);
  append(silence(9));
  append(silence(2));
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "audio_backlog");
  clock_.advance_ns(int64_t{2} * 1'000'000'000);
  append(silence(2));
  append(silence(2));
  EXPECT_EQ(hear(), "error");  // of the last: 13 s in 2
  // Minutes with little sound are no right to minutes at once, only to what a stalled network may bring.
  clock_.advance_ns(int64_t{400} * 1'000'000'000);
  append(silence(9));
  append(silence(9));
  append(silence(9));
  EXPECT_EQ(hear(), "error");
  say(R"({"type":"input_audio_buffer.clear"})");
  EXPECT_EQ(hear(), "input_audio_buffer.cleared");
}

TEST_F(HearingTest, ATurnIsToldAsWasAskedWhenItBegan) {
  start(R"({"turn_detection":null,"transcription":null})");
  append(beeps({0.1}, 0.5, kRateHz));
  update(R"({"transcription":{"keywords":["Syrinx"]}})");
  EXPECT_THAT(last_.dump(), HasSubstr(R"("keywords":["Syrinx"])"));
  say(kCommit);
  hear_until(kFailed);
  EXPECT_EQ(text_in({"error", "code"}), "transcription_too_late");
  append(beeps({0.1}, 0.5, kRateHz));
  update(R"({"transcription":null})");
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep");
}

class SilenceBehindAResponse : public HearingTest {
 protected:
  // The timeout is the 5 s of the session.
  void outlives_a_clear() {
    say(R"({"type":"response.create","response":{"input":[{"type":"message","role":"user","content":[)"
        R"({"type":"input_text","text":"A long story."}]}]}})");
    hear_until("response.done");
    say(R"({"type":"input_audio_buffer.clear"})");
    EXPECT_EQ(hear(), "input_audio_buffer.cleared");
    clock_.advance_ns(int64_t{5000} * 1'000'000);
    nothing_comes();  // some of it is not over yet
    clock_.advance_ns(int64_t{60} * 1'000'000'000);
    session_->messages()->poke();
    EXPECT_EQ(hear(), "input_audio_buffer.timeout_triggered");
  }
};

// A turn that is cleared while a response is played is no reason to wait less long for the next.
TEST_F(SilenceBehindAResponse, OutlivesATurnThatIsCleared) {
  start(
      R"({"turn_detection":{"type":"server_vad","silence_duration_ms":200,"idle_timeout_ms":5000,"interrupt_response":false}})",
      {.speech = speech_});
  append(noise(0.6));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  outlives_a_clear();
}

// From the moment at which the sound of a response stopped, not from that at which all of it would have been played.
TEST_F(HearingTest, TheSilenceBehindAnInterruptionBeginsWithIt) {
  engine_->act.chunks = 100000;
  start(
      R"({"transcription":{},"turn_detection":{"type":"server_vad","silence_duration_ms":200,"idle_timeout_ms":5000}})",
      {.speech = speech_});
  say(R"({"type":"response.create","response":{"input":[{"type":"message","role":"user","content":[)"
      R"({"type":"input_text","text":"A long story."}]}]}})");
  hear_until("response.output_audio.delta");
  append(noise(0.6));
  hear_until("response.done");
  clock_.advance_ns(int64_t{6} * 1'000'000'000);
  say(R"({"type":"input_audio_buffer.clear"})");
  hear_until("input_audio_buffer.cleared");
  nothing_comes();  // nobody has been silent for long
  clock_.advance_ns(int64_t{6} * 1'000'000'000);
  session_->messages()->poke();
  EXPECT_EQ(hear(), "input_audio_buffer.timeout_triggered");
}

// Its thread may run for long before the session's, which has asked for it, goes on.
TEST_F(HearingTest, AnEarHasItsSoundWhenItBegins) {
  stands_still_ = true;
  start(kManual, {.ear_times = kShort});
  append(beeps({0.1}, 0.5, kRateHz));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep");
}

// The turn stays open while its slot is somebody else's.
TEST_F(HearingTest, ATurnThatPausesIsLoggedAsThat) {
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start(kManual, {.ear_times = kShort}, &lines);
    append(beeps({0.1}, 0.5, kRateHz));
    EXPECT_TRUE(streams_are(1));
    EXPECT_TRUE(slots_are_busy(0));
    recogniser_->still = true;  // the second ear is at work, so it does not pause, until the commit has come
    append(beeps({0.1}, 0.5, kRateHz));
    say(kCommit);
    hear_until("conversation.item.done");
    recogniser_->still = false;
    hear_until(kCompleted);
    EXPECT_TRUE(slots_are_busy(0));
    leave();
  });
  EXPECT_THAT(log, testing::ContainsRegex("paused.*\n.*done"));
  EXPECT_THAT(log, testing::Not(HasSubstr("cancelled")));
}

TEST_F(HearingTest, ATurnOfWhichNothingWasHeardIsNotInTheLog) {
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    Ear ear({.model = recognition_}, JobReports{.metrics = metrics_, .log = &lines}, [] {});
    EXPECT_TRUE(ear.drop(1));
    EXPECT_TRUE(ear.end(2));
    SlotWatch watch(clock_);
    std::thread slot([&] { ear.run(watch); });
    Ear::News news;
    const Stopwatch waited;
    while (!ear.take(news) && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    EXPECT_EQ(news.turn, 2U);
    ear.leave();
    slot.join();
  });
  EXPECT_EQ(log, "");
}

TEST_F(HearingTest, AClientThatLeavesInATurnGivesItsSlotUp) {
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start(kManual, {.ear_times = {.open_idle = std::chrono::hours(1)}}, &lines);
    append(beeps({0.1}, 0.5, kRateHz));
    EXPECT_TRUE(streams_are(1));
    leave();
    EXPECT_TRUE(slots_are_busy(0));
  });
  EXPECT_THAT(log, HasSubstr("cancelled"));
}

// The engine is busy with others, and not waited for.
TEST_F(HearingTest, AClientThatLeavesDoesNotWaitForItsTurn) {
  const std::string log = logged(folder_.path() + "/log", [&](RequestLog& lines) {
    start(kManual, {.ear_times = {.open_idle = std::chrono::hours(1)}}, &lines);
    recogniser_->still = true;
    append(beeps({0.1}, 0.5, kRateHz));
    const Stopwatch waited;
    while (recogniser_->pushes == 0 && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    session_->messages()->leave();
    thread_.join();
    session_.reset();
    EXPECT_TRUE(slots_are_busy(0));
  });
  EXPECT_THAT(log, HasSubstr("\"stopped\":\"cancelled\""));
  EXPECT_THAT(log, testing::Not(HasSubstr("\"error\"")));
}

TEST_F(HearingTest, ATurnThatVoiceHasFoundIsForgottenWhenItIsCleared) {
  start(kDetected, {.ear_times = {.open_idle = std::chrono::hours(1)}});
  append(noise(0.4));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  const std::string item = text_in({"item_id"});
  say(R"({"type":"input_audio_buffer.clear"})");
  hear_until("input_audio_buffer.cleared");
  EXPECT_TRUE(slots_are_busy(0));
  refused(kCommit, "null", "0 ms");
  append(noise(0.4));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  EXPECT_NE(text_in({"item_id"}), item);
  say(kCommit);
  EXPECT_EQ(hear(), "input_audio_buffer.committed");
  hear_until(kCompleted);
}

TEST_F(HearingTest, TheFormatMayChangeInATurn) {
  start(kManual);
  append(beeps({0.1}, 0.5, kRateHz));
  update(R"({"format":{"type":"audio/pcmu"}})");
  append(mu_law_base64(beeps({0.1}, 0.5, 8000)));
  say(kCommit);
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep beep");
  EXPECT_EQ(text_in({"usage", "seconds"}), "1.0");
}

// By whatever way it became one, and whoever would answer.
TEST_F(HearingTest, InASessionOfTranscriptionNothingIsSpoken) {
  const auto answers = std::make_shared<FixedAnswer>("You said it.");
  start(kManual, {.speech = speech_, .replies = answers, .answers_turns = true});
  say(R"({"type":"transcription_session.update","session":{"audio":{"input":{"turn_detection":{"type":"server_vad"}}}}})");
  hear_until("session.updated");
  EXPECT_EQ(text_in({"session", "type"}), "transcription");
  EXPECT_EQ(text_in({"session", "object"}), "realtime.transcription_session");
  refused(R"({"type":"response.create","response":{"input":[{"type":"message","role":"user","content":[)"
          R"({"type":"input_text","text":"A long story."}]}]}})",
          "null", "type transcription");
  append(noise(0.6));
  append(silence(1));
  hear_until(kCompleted);
  say(R"({"type":"session.update","session":{"type":"realtime"}})");  // behind the turn
  hear_until("session.updated");
  EXPECT_EQ(text_in({"session", "type"}), "realtime");
  EXPECT_TRUE(answers->asked.empty());
}

// A clear is no sign that nobody speaks: what is played then still is.
TEST_F(SilenceBehindAResponse, BeginsWhenItHasBeenPlayed) {
  start(R"({"turn_detection":{"type":"server_vad","idle_timeout_ms":5000}})", {.speech = speech_});
  outlives_a_clear();
}

}  // namespace
}  // namespace syrinx::server::realtime
