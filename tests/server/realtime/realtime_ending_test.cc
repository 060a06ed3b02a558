// How realtime sessions end with the server, and with their time, while something is under way.
#include <atomic>

#include "tests/server/realtime/hearing_fixture.h"

namespace syrinx::server::realtime {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string ask(const char* modality) {
  return R"({"type":"response.create","event_id":"asked","response":{"output_modalities":[")" + std::string(modality) +
         R"("],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"A story."}]}]}})";
}

class EndTest : public HearingTest {
 protected:
  void TearDown() override {
    is_held_ = false;
    HearingTest::TearDown();
  }
  void go_down() { session_->messages()->end_when_idle(); }
  void expect_closed(int code) {
    const Stopwatch waited;
    while (!session_->messages()->ended() && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
    ASSERT_TRUE(session_->messages()->ended());
    EXPECT_EQ(session_->messages()->ended()->code, code);
    MessageStream::Message more;
    EXPECT_FALSE(session_->messages()->try_pop(more)) << more.bytes;
  }
  void expect_error(const char* code) {
    ASSERT_EQ(hear(), "error") << last_.dump();
    EXPECT_EQ(text_in({"error", "code"}), code) << last_.dump();
  }
  // The last event says so.
  void expect_gone() {
    ASSERT_NO_FATAL_FAILURE(expect_error("draining"));
    EXPECT_EQ(text_in({"error", "type"}), "overloaded_error");
    EXPECT_EQ(text_in({"error", "event_id"}), "null");
    expect_closed(1001);
  }
  // Has the session's thread stand still while it looks for a slot, and finds none.
  TakeSlot hold() {
    return [this]() -> tl::expected<SlotPool::Lease, HttpError> {
      is_asked_ = true;
      const Stopwatch waited;
      while (is_held_ && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
      return tl::unexpected(HttpError{.status = 503, .message = "all slots are busy", .code = "no_free_slot"});
    };
  }

  std::atomic<bool> is_asked_{false}, is_held_{true};
};

TEST_F(EndTest, CutPieceIsToldWithResponse) {
  engine_->act.finished.add(FinishReason::kRepeats);
  start(kManual, {.speech = speech_});
  say(ask("audio"));
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status_details", "finish_reason"}), "repeats");
}

TEST_F(EndTest, AServerThatGoesWaitsForAResponse) {
  start(kManual, {.speech = speech_});
  say(ask("audio"));
  EXPECT_EQ(hear(), "response.created");
  go_down();
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status"}), "completed");
  expect_gone();
}

TEST_F(EndTest, ASessionInWhichNothingIsUnderWayEndsAtOnce) {
  start(kManual);
  go_down();
  expect_gone();
}

TEST_F(EndTest, ATurnThatIsOpenIsToldWhenTheServerGoes) {
  start(kManual);
  append(beeps({0.1}, 0.5, kRateHz));
  go_down();
  EXPECT_THAT(hear_until(kCompleted), Contains("input_audio_buffer.committed"));
  EXPECT_EQ(text_in({"transcript"}), "beep");
  expect_gone();
  EXPECT_TRUE(slots_are_busy(0));
}

TEST_F(EndTest, ATurnThatFailsIsToldWhenTheServerGoes) {
  recogniser_->start_fault = "the weights are gone";
  start(kManual);
  append(beeps({0.1}, 0.5, kRateHz));
  go_down();
  hear_until(kFailed);
  expect_gone();
}

TEST_F(EndTest, ShortAudioIsDroppedAtShutdown) {
  start(kManual);
  append(noise(0.05));
  go_down();
  expect_gone();
  EXPECT_TRUE(slots_are_busy(0));
}

// Half a sentence, which is told and not answered as if it were all.
TEST_F(EndTest, ATurnThatTheServerCutsIsNotAnswered) {
  start(kDetected, {.speech = speech_, .replies = answers_, .answers_turns = true});
  append(noise(0.6));
  EXPECT_EQ(hear(), "input_audio_buffer.speech_started");
  go_down();
  hear_until(kCompleted);
  expect_gone();
  EXPECT_TRUE(answers_->asked.empty());
}

// Nor with what was said before, behind a short pause.
TEST_F(EndTest, ATurnBehindWhichTheServerCutsAnotherIsNotAnswered) {
  say_a_turn_that_waits();
  go_on_speaking();
  go_down();
  hear_until("input_audio_buffer.committed");
  recogniser_->still = false;
  hear_until(kCompleted);
  hear_until(kCompleted);
  expect_gone();
  EXPECT_TRUE(answers_->asked.empty());
}

TEST_F(EndTest, ATurnThatWasOverIsAnswered) {
  say_a_turn_that_waits();
  go_down();
  recogniser_->still = false;
  hear_until(kCompleted);
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status"}), "completed");
  expect_gone();
}

TEST_F(EndTest, EarlierEventsAreHandled) {
  start(kManual, {.speech = speech_, .take_slot = hold()});
  say(ask("audio"));
  const Stopwatch waited;
  while (!is_asked_ && waited.elapsed_ms() < kPatienceMs) std::this_thread::yield();
  say(ask("text"));
  go_down();
  is_held_ = false;
  expect_error("no_free_slot");
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status"}), "completed");
  expect_gone();
}

// As much as can have been waiting is heeded; here each question has the next one asked.
TEST_F(EndTest, AClientThatSendsOnIsNotWaitedFor) {
  start(kManual,
        {.speech = speech_, .take_slot = [this]() -> tl::expected<SlotPool::Lease, HttpError> {
           say(ask("audio"));
           return tl::unexpected(HttpError{.status = 503, .message = "all slots are busy", .code = "no_free_slot"});
         }});
  say(ask("audio"));
  expect_error("no_free_slot");
  go_down();
  size_t heard = 0;
  while (hear() == "error" && text_in({"error", "code"}) == "no_free_slot" && heard < 4 * MessageStream::kMessages)
    ++heard;
  EXPECT_EQ(text_in({"error", "code"}), "draining") << heard;
  expect_closed(1001);
}

TEST_F(EndTest, BehindThatNothingBegins) {
  start(kManual, {.speech = speech_, .ear_times = {.open_idle = std::chrono::hours(1)}});
  recogniser_->still = true;
  append(beeps({0.1}, 0.5, kRateHz));
  go_down();
  hear_until("conversation.item.done");
  for (int i = 0; i < 2; ++i) append(beeps({0.1}, 0.5, kRateHz));
  expect_error("draining");
  EXPECT_EQ(text_in({"error", "event_id"}), "mine");
  say(R"({"type":"input_audio_buffer.commit","event_id":"over"})");  // sound is refused once
  expect_error("draining");
  EXPECT_EQ(text_in({"error", "event_id"}), "over");
  say(ask("text"));
  expect_error("draining");
  EXPECT_EQ(text_in({"error", "event_id"}), "asked");
  say(R"({"type":"session.update","session":{}})");
  EXPECT_EQ(hear(), "session.updated");
  recogniser_->still = false;
  hear_until(kCompleted);
  EXPECT_EQ(text_in({"transcript"}), "beep");
  expect_gone();
}

// Its reason is none of OpenAI's for what is cancelled.
TEST_F(EndTest, ASessionsTimeEndsItsResponseToo) {
  engine_->act.chunks = SIZE_MAX;
  start(kManual, {.speech = speech_, .max_session_s = 100, .idle_s = 10});
  say(ask("audio"));
  hear_until("response.output_audio.delta");
  clock_.advance_ns(int64_t{101} * 1'000'000'000);
  session_->messages()->poke();
  EXPECT_THAT(hear_until("response.done"), Contains("response.output_audio.done"));
  EXPECT_EQ(text_in({"response", "status"}), "failed");
  EXPECT_EQ(text_in({"response", "status_details", "error", "code"}), "session_expired");
  EXPECT_EQ(text_in({"response", "output", "status"}), "incomplete");
  expect_error("session_expired");
  expect_closed(1008);
}

}  // namespace
}  // namespace syrinx::server::realtime
