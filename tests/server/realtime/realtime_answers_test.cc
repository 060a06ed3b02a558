// The source of replies in a realtime session: when it is asked, with which text, and how its reply ends.
#include <fmt/format.h>

#include <atomic>
#include <optional>

#include "engine/families/pocket_tts/pocket_family.h"
#include "tests/server/realtime/hearing_fixture.h"

namespace syrinx::server::realtime {
namespace {

// As OpenAI's clients do it who commit by themselves: the answer is asked for before the words are known.
TEST_F(HearingTest, AnAnswerWaitsForTheWordsThatItIsAbout) {
  const auto answers = std::make_shared<FixedAnswer>("You said it.");
  start(kManual, {.speech = speech_, .replies = answers, .answers_turns = true});
  recogniser_->still = true;
  append(beeps({0.3, 0.9}, 1.5, kRateHz));
  say(kCommit);
  // As text, since the acting engine's speech ends whether its text has come or not.
  say(R"({"type":"response.create","response":{"output_modalities":["text"],"instructions":"Be brief.",)"
      R"("max_output_tokens":7}})");
  hear_until("response.created");
  recogniser_->still = false;
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status"}), "completed");
  ASSERT_EQ(answers->asked.size(), 1u);
  const Prompt& asked = answers->asked[0];
  EXPECT_EQ(asked.instructions, "Be brief.");
  EXPECT_EQ(asked.max_tokens, 7);
  EXPECT_EQ(asked.turns[0].text, "beep beep");
  say(R"({"type":"response.create"})");
  hear_until("response.done");
  ASSERT_EQ(answers->asked.size(), 2u);
  ASSERT_EQ(answers->asked[1].turns.size(), 2u);
  EXPECT_EQ(answers->asked[1].turns[1].role, "assistant");
  EXPECT_EQ(answers->asked[1].turns[1].text, "You said it.");
  EXPECT_TRUE(answers->asked[1].turns[0].is_answered);
}

// While their words are awaited, the one who said them goes on.
class PauseTest : public HearingTest {
 protected:
  void say_two_turns(const std::string& fault_of_second = {}) {
    say_a_turn_that_waits();
    go_on_speaking();
    EXPECT_TRUE(streams_are(1));  // of the first, which has its sound waiting
    recogniser_->start_fault = fault_of_second;
    recogniser_->still = false;
    hear_until(kCompleted);
    EXPECT_THAT(text_in({"transcript"}), testing::HasSubstr("beep"));
    nothing_comes();
    EXPECT_TRUE(answers_->asked.empty());
  }
  // With so many turns that had words.
  void expect_one_answer(size_t heard) {
    EXPECT_EQ(text_in({"response", "status"}), "completed");
    ASSERT_EQ(answers_->asked.size(), 1u);
    EXPECT_EQ(std::count_if(answers_->asked[0].turns.begin(), answers_->asked[0].turns.end(),
                            [](const Turn& turn) { return !turn.text.empty(); }),
              static_cast<std::ptrdiff_t>(heard));
  }
};

TEST_F(PauseTest, SpeechAcrossPauseIsAnsweredOnce) {
  say_two_turns();
  append(silence(0.6));
  hear_until(kCompleted);
  hear_until("response.done");
  expect_one_answer(2);
}

TEST_F(PauseTest, WordsBeforeFailedTurnAreAnswered) {
  say_two_turns("nothing can be heard");
  append(silence(0.6));
  hear_until(kFailed);
  hear_until("response.done");
  expect_one_answer(1);
}

TEST_F(PauseTest, WordsBeforeClearedTurnAreAnswered) {
  say_two_turns();
  say(R"({"type":"input_audio_buffer.clear"})");
  hear_until("response.done");
  expect_one_answer(1);
}

// Thinks until it is let go.
class HeldAnswer final : public ReplySource {
 public:
  Result<std::unique_ptr<Reply>> start(Prompt prompt, std::function<void()> /*wake*/) override {
    asked.push_back(std::move(prompt));
    return std::make_unique<Held>(*this);
  }
  std::vector<Prompt> asked;  // of the session's thread, until it has told of what was answered
  std::atomic<bool> thinks{true};

 private:
  struct Held final : Reply {
    explicit Held(const HeldAnswer& source) : source(source) {}
    Result<bool> take(std::string& text) override {
      if (source.thinks) return true;
      text += "You said it.";
      return false;
    }
    const HeldAnswer& source;
  };
};

class ThinkingTest : public HearingTest {
 protected:
  // Answers as text, since the acting engine's speech ends whether its text has come or not.
  void start_session() {
    start(kDetected, {.speech = speech_, .replies = held_, .answers_turns = true});
    say(R"({"type":"session.update","session":{"output_modalities":["text"]}})");
    hear_until("session.updated");
  }
  void expect_done(const char* status) {
    hear_until("response.done");
    EXPECT_EQ(text_in({"response", "status"}), status);
  }
  void let_go() {
    held_->thinks = false;
    session_->messages()->poke();
  }
  const std::shared_ptr<HeldAnswer> held_ = std::make_shared<HeldAnswer>();
};

TEST_F(ThinkingTest, ACoughMeanwhileLeavesTheQuestionOwed) {
  start_session();
  append(noise(0.6));
  append(silence(0.6));
  hear_until("response.created");
  go_on_speaking();
  expect_done("cancelled");
  nothing_comes();
  let_go();
  say(R"({"type":"input_audio_buffer.clear"})");
  expect_done("completed");
  ASSERT_EQ(held_->asked.size(), 2u);
  EXPECT_EQ(held_->asked[1].turns[0].text, held_->asked[0].turns[0].text);
}

// Typing beside the microphone.
TEST_F(ThinkingTest, QuestionIsNotRepeatedForEver) {
  start_session();
  append(noise(0.6));
  append(silence(0.6));
  for (int times = 0; times < 3; ++times) {
    hear_until("response.created");
    go_on_speaking();
    expect_done("cancelled");
    say(R"({"type":"input_audio_buffer.clear"})");
  }
  hear_until("input_audio_buffer.cleared");
  nothing_comes();
  EXPECT_EQ(held_->asked.size(), 3u);
}

// The engine goes on for as long as it is heard.
TEST_F(HearingTest, AnAnswerThatHasBeenHeardIsNotOwed) {
  engine_->act.chunks = 20000;
  start(kDetected, {.speech = speech_, .replies = answers_, .answers_turns = true});
  append(noise(0.6));
  append(silence(0.6));
  hear_until("response.output_audio.delta");
  go_on_speaking();
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status"}), "cancelled");
  say(R"({"type":"input_audio_buffer.clear"})");
  hear_until("input_audio_buffer.cleared");
  nothing_comes();
  EXPECT_EQ(answers_->asked.size(), 1u);
}

TEST_F(ThinkingTest, CancelledAnswerIsNotDue) {
  start_session();
  append(noise(0.6));
  append(silence(0.6));
  hear_until("response.created");
  say(R"({"type":"response.cancel"})");
  expect_done("cancelled");
  go_on_speaking();
  say(R"({"type":"input_audio_buffer.clear"})");
  hear_until("input_audio_buffer.cleared");
  nothing_comes();
  EXPECT_EQ(held_->asked.size(), 1u);
}

// As of a client that has each question looked at by a model meanwhile.
TEST_F(ThinkingTest, AnAsideDelaysTheAnswer) {
  for (const char* const conversation : {"none", "auto"}) {
    held_->asked.clear();
    held_->thinks = true;
    start_session();
    recogniser_->still = true;
    append(noise(0.6));
    append(silence(0.6));
    hear_until("input_audio_buffer.committed");
    say(fmt::format(R"({{"type":"response.create","response":{{"conversation":"{}","input":[{{"type":"message",)"
                    R"("role":"user","content":[{{"type":"input_text","text":"Is it rude?"}}]}}]}}}})",
                    conversation));
    hear_until("response.created");
    recogniser_->still = false;
    hear_until(kCompleted);
    nothing_comes();
    let_go();
    expect_done("completed");
    expect_done("completed");
    ASSERT_EQ(held_->asked.size(), 2u);
    EXPECT_THAT(held_->asked[1].turns[0].text, testing::HasSubstr("beep"));
    leave();
  }
}

// Answers everything with a text that is not all of it.
class CutAnswer final : public ReplySource, public Reply {
 public:
  explicit CutAnswer(const char* why = nullptr) : why_(why) {}
  Result<std::unique_ptr<Reply>> start(Prompt /*prompt*/, std::function<void()> /*wake*/) override {
    return std::make_unique<CutAnswer>("max_output_tokens");
  }
  Result<bool> take(std::string& text) override {
    text += "And so";
    return false;
  }
  const char* cut_short() const override { return why_; }

 private:
  const char* why_;
};

TEST_F(HearingTest, AnAnswerThatIsCutIsIncomplete) {
  for (const char* const modality : {"audio", "text"}) {
    start(kManual, {.speech = speech_, .replies = std::make_shared<CutAnswer>()});
    say(fmt::format(R"({{"type":"response.create","response":{{"output_modalities":["{}"]}}}})", modality));
    hear_until("response.done");
    EXPECT_EQ(text_in({"response", "status"}), "incomplete");
    EXPECT_EQ(text_in({"response", "status_details", "reason"}), "max_output_tokens");
    EXPECT_EQ(text_in({"response", "output", "status"}), "incomplete");
    leave();
  }
}

// A model that thinks too long says nothing, and an emoji has no sound: the client can mend neither.
TEST_F(HearingTest, AnAnswerThatCannotBeSaidIsToldWithoutSound) {
  engine_->act = {.chunks = 0, .end = [] { return Status(fail(Code::kInvalidArgument, "there is nothing to say")); }};
  for (const bool answers : {true, false}) {
    start(kManual,
          {.speech = speech_, .replies = std::make_shared<FixedAnswer>("\U0001f44d"), .answers_turns = answers});
    say(R"({"type":"response.create"})");
    hear_until("response.done");
    EXPECT_EQ(text_in({"response", "status"}), answers ? "completed" : "failed");
    leave();
  }
}

TEST_F(HearingTest, WithoutASlotNothingIsAsked) {
  const auto answers = std::make_shared<FixedAnswer>("You said it.");
  const auto busy = []() -> tl::expected<SlotPool::Lease, HttpError> {
    return tl::unexpected(HttpError{.status = 503, .message = "all slots are busy", .code = "no_free_slot"});
  };
  start(kManual, {.speech = speech_, .replies = answers, .answers_turns = true, .take_slot = busy});
  say(R"({"type":"response.create"})");
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "no_free_slot");
  EXPECT_TRUE(answers->asked.empty());
}

// A turn is due an answer, and the only slot is taken.
class OwedAnswer : public HearingTest {
 protected:
  void say_a_turn() {
    append(noise(0.6));
    append(silence(0.6));
    hear_until(kCompleted);
  }
  void start_session() {
    start(kDetected,
          {.speech = speech_,
           .replies = answers_,
           .answers_turns = true,
           .take_slot = [this]() -> tl::expected<SlotPool::Lease, HttpError> {
             ++asked_;
             if (auto place = places_.try_take()) return std::move(*place);
             return tl::unexpected(HttpError{.status = 503, .message = "all slots are busy", .code = "no_free_slot"});
           },
           .has_slot = [this] { return places_.busy() < places_.size(); }});
  }
  void pass_s(int64_t seconds) {
    clock_.advance_ns(seconds * 1'000'000'000);
    session_->messages()->poke();
  }
  void nothing_is_told() {
    for (int round = 0; round < 2; ++round) {
      say(R"({"type":"conversation.item.retrieve","item_id":"none"})");
      ASSERT_EQ(hear(), "error") << last_.dump();
      ASSERT_EQ(text_in({"error", "code"}), "item_retrieve_invalid_item_id") << last_.dump();
    }
  }
  void expect_an_answer() {
    hear_until("response.done");
    EXPECT_EQ(text_in({"response", "status"}), "completed");
    EXPECT_EQ(answers_->asked.size(), 1u);
  }

  SlotPool places_{1, clock_};
  std::optional<SlotPool::Lease> taken_ = places_.try_take();
  std::atomic<int> asked_{0};
};

TEST_F(OwedAnswer, WaitsForASlot) {
  start_session();
  say_a_turn();
  ASSERT_NO_FATAL_FAILURE(nothing_is_told());
  pass_s(9);
  ASSERT_NO_FATAL_FAILURE(nothing_is_told());
  EXPECT_EQ(asked_, 1);  // each time counts as a refusal
  taken_.reset();
  expect_an_answer();
}

TEST_F(OwedAnswer, IsGivenUpInTheEnd) {
  start_session();
  say_a_turn();
  ASSERT_NO_FATAL_FAILURE(nothing_is_told());
  pass_s(10);
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "no_free_slot");
  taken_.reset();
  ASSERT_NO_FATAL_FAILURE(nothing_is_told());
  EXPECT_TRUE(answers_->asked.empty());
}

TEST_F(OwedAnswer, IsOneWithThatOfTheNextTurn) {
  start_session();
  say_a_turn();
  pass_s(9);
  append(noise(0.6));
  hear_until("input_audio_buffer.speech_started");
  taken_.reset();
  ASSERT_NO_FATAL_FAILURE(nothing_is_told());
  taken_.emplace(*places_.try_take());
  append(silence(0.6));
  hear_until(kCompleted);
  pass_s(9);  // by which new words are waited for anew
  ASSERT_NO_FATAL_FAILURE(nothing_is_told());
  taken_.reset();
  expect_an_answer();
  EXPECT_EQ(answers_->asked[0].turns.size(), 2u);
}

TEST_F(OwedAnswer, IsThatWhichTheClientAsksFor) {
  start_session();
  say_a_turn();
  say(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
  expect_an_answer();
  taken_.reset();
  ASSERT_NO_FATAL_FAILURE(nothing_is_told());
  EXPECT_EQ(answers_->asked.size(), 1u);
}

// Between the moment at which it was found and the engine's start.
TEST_F(HearingTest, AVoiceThatIsDeletedMeanwhileIsNotThere) {
  Settings settings;
  settings.voices_dir = folder_.path() + "/shelf";
  settings.speech_model = "pocket";
  SpeechFiles voices;
  voices.family = &pocket_tts_family();
  voices.voices = folder_.path();
  const auto model = SpeechModel::of(settings, voices, engine_);
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE((*model)->shelf().put("me", "voice"));
  engine_->before = [&] { EXPECT_TRUE((*model)->shelf().remove("me")); };
  engine_->refusal = Error{Code::kNotFound, "there is no voice 'me' in /secret"};
  start(kManual, {.speech = *model});
  say(R"({"type":"response.create","response":{"audio":{"output":{"voice":"me"}},"input":[{"type":"message",)"
      R"("role":"user","content":[{"type":"input_text","text":"A story."}]}]}})");
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "voice_not_found");
  EXPECT_EQ(text_in({"error", "type"}), "invalid_request_error");
  EXPECT_THAT(last_.dump(), testing::Not(testing::HasSubstr("secret")));
  leave();
}

// Spoken answers have no Markdown marks, written ones keep them; the client's own text stays as it is.
TEST_F(HearingTest, TheMarksOfAnAnswerAreNotSpoken) {
  const auto answers = std::make_shared<FixedAnswer>("# Tea\n- **Green** [tea](http://x.org) at `80`\n- 2 * 3");
  for (const bool generated : {true, false}) {
    for (const bool spoken : {true, false}) {
      start(kManual, {.speech = speech_, .replies = answers, .answers_turns = generated});
      say(fmt::format(R"({{"type":"response.create","response":{{"output_modalities":["{}"]}}}})",
                      spoken ? "audio" : "text"));
      hear_until("response.done");
      const char* const key = spoken ? "transcript" : "text";
      EXPECT_EQ(text_in({"response", "output", "content", key}),
                generated && spoken ? "Tea\nGreen tea at 80\n2 * 3"
                                    : "# Tea\n- **Green** [tea](http://x.org) at `80`\n- 2 * 3");
      leave();
    }
  }
}

TEST_F(HearingTest, QuestionsHaveAPace) {
  start(kManual, {.speech = speech_, .replies = std::make_shared<FixedAnswer>("You said it."), .answers_turns = true});
  const std::string ask = R"({"type":"response.create","response":{"output_modalities":["text"]}})";
  for (int i = 0; i < 16; ++i) {
    say(ask);
    hear_until("response.done");
  }
  for (int i = 0; i < 2; ++i) {
    say(ask);
    EXPECT_EQ(hear(), "error");
    EXPECT_EQ(text_in({"error", "code"}), "rate_limit_exceeded");
    clock_.advance_ns(250'000'000);
    say(ask);
    hear_until("response.done");
  }
}

// Waits for what nobody tells it.
class PolledAnswer final : public ReplySource, public Reply {
 public:
  Result<std::unique_ptr<Reply>> start(Prompt /*prompt*/, std::function<void()> /*wake*/) override {
    return std::make_unique<PolledAnswer>();
  }
  Result<bool> take(std::string& text) override {
    if (--looks_ > 0) return true;
    text += "Here it is.";
    return false;
  }
  std::optional<std::chrono::nanoseconds> looks_again_in() const override { return std::chrono::nanoseconds(0); }

 private:
  int looks_ = 100;  // with a second between them, more than any test waits
};

TEST_F(HearingTest, AnswerWithoutWakesIsLookedFor) {
  start(kManual, {.speech = speech_, .replies = std::make_shared<PolledAnswer>(), .answers_turns = true});
  say(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status"}), "completed");
}

TEST(SpokenText, OfABrokenAnswerNoMoreIsKeptThanItsSoundCanHave) {
  Item item{.role = Role::kAssistant, .status = ItemStatus::kIncomplete, .is_sound = true, .audio_ms = 4000};
  for (int i = 0; i < 400; ++i) item.text += "word ";
  EXPECT_EQ(heard_text(item, 2000).size(), 999u);  // as if all had been spoken
  item.spoken_bytes = spoken_bytes(item, 1);
  EXPECT_EQ(item.spoken_bytes, 79u);
  EXPECT_EQ(heard_text(item, 2000), "word word word word word word word word");
  EXPECT_EQ(heard_text(item, 4000).size(), 79u);
  item.words = {{.text = "word", .source_begin = 10, .source_end = 14, .start_s = 1, .end_s = 2}};
  EXPECT_EQ(spoken_bytes(item, 1), 14u);
  item.text = "word";
  item.words.clear();
  EXPECT_EQ(spoken_bytes(item, 1), 4u);
}

// The text of an answer may be far ahead of its sound.
TEST_F(HearingTest, UnspokenTextIsNotSentUpstream) {
  engine_->act.chunks = 100000;
  std::string text;
  for (int i = 0; i < 800; ++i) text += "word ";
  const auto answers = std::make_shared<FixedAnswer>(text);
  start(kManual, {.speech = speech_, .replies = answers, .answers_turns = true});
  say(R"({"type":"response.create"})");
  hear_until("response.output_audio.delta");
  say(R"({"type":"response.cancel"})");
  hear_until("response.done");
  say(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
  hear_until("response.done");
  ASSERT_EQ(answers->asked.size(), 2u);
  ASSERT_EQ(answers->asked[1].turns.size(), 1u);
  EXPECT_LT(answers->asked[1].turns[0].text.size(), 1000u);
}

TEST_F(HearingTest, TokensAreANumberOrNone) {
  start(kManual);
  for (const char* const bad : {"0", "4097", "1.5", "\"many\"", "[]"}) {
    say(fmt::format(R"({{"type":"session.update","session":{{"max_output_tokens":{}}}}})", bad));
    EXPECT_EQ(hear(), "error") << bad;
    EXPECT_EQ(text_in({"error", "param"}), "max_output_tokens");
  }
  for (const char* const good : {"4096", "\"inf\""}) {
    say(fmt::format(R"({{"type":"session.update","session":{{"max_output_tokens":{}}}}})", good));
    EXPECT_EQ(hear(), "session.updated") << good;
    EXPECT_EQ("\"" + text_in({"session", "max_output_tokens"}) + "\"", good == std::string("4096") ? "\"4096\"" : good);
  }
}

}  // namespace
}  // namespace syrinx::server::realtime
