// How fast a session heeds its client's events, and which of them it reads at all.
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "tests/server/realtime/hearing_fixture.h"

namespace syrinx::server::realtime {
namespace {

using testing::HasSubstr;

// Ten seconds' worth at once, and one message beyond it; start() has sent the first.
class PacedSession : public HearingTest {
 protected:
  void heeds(int times) {
    for (int i = 0; i < times; ++i) ASSERT_EQ(hear(), "session.updated") << last_.dump();
  }
  void heeds_nothing() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a session that did would have done so by then
    MessageStream::Message message;
    EXPECT_FALSE(session_->messages()->try_pop(message)) << message.bytes;
  }
  void pass_s(int64_t seconds) {
    clock_.advance_ns(seconds * 1'000'000'000);
    session_->messages()->poke();
  }
  static constexpr const char* kUpdate = R"({"type":"session.update","session":{}})";
};

TEST_F(PacedSession, EventsThatComeFasterWait) {
  start(kManual, {.events_per_s = 1});
  for (int i = 0; i < 12; ++i) say(kUpdate);
  heeds(10);
  heeds_nothing();
  pass_s(1);
  heeds(1);
  heeds_nothing();
  pass_s(1);
  heeds(1);
  // Whoever is silent for long has no more to his credit than that.
  pass_s(400);
  for (int i = 0; i < 22; ++i) say(kUpdate);
  heeds(21);
  heeds_nothing();
}

TEST_F(PacedSession, InvalidEventsCostMore) {
  start(kManual, {.events_per_s = 1});
  for (int i = 0; i < 4; ++i) say("{");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(hear(), "error");
  heeds_nothing();
  pass_s(3);
  EXPECT_EQ(hear(), "error");
}

TEST_F(PacedSession, BytesCountToo) {
  start(kManual, {.events_per_s = 1000, .kb_per_s = 1});
  say(R"({"type":"session.update","session":{"instructions":")" + std::string(11 << 10, 'x') + "\"}}");
  say(kUpdate);
  heeds(1);
  heeds_nothing();
  pass_s(2);
  heeds(1);
}

TEST_F(PacedSession, UnreadBytesCountLess) {
  start(kManual, {.max_backlog_s = 0.1, .max_clip_s = 0.1, .events_per_s = 1000, .kb_per_s = 1});
  say(R"({"type":"input_audio_buffer.append","audio":")" + std::string(30 << 10, 'A') + "\"}");
  ASSERT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "audio_backlog");
  say(kUpdate);
  heeds(1);
}

// That is too much to be spoken, so that it may be asked for again and again.
TEST_F(PacedSession, TextsThatAreLookedAtCountEachTime) {
  start(kManual, {.speech = speech_, .kb_per_s = 1, .max_text_characters = 5000});
  for (int i = 0; i < 2; ++i) {
    say(R"({"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text",)"
        R"("text":")" +
        std::string(4000, 'x') + "\"}]}}");
    hear_until("conversation.item.done");
  }
  say(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
  hear_until("response.done");
  EXPECT_EQ(text_in({"response", "status"}), "failed");
  say(kUpdate);
  heeds_nothing();
  pass_s(7);
  heeds(1);
}

// Events that had come by then are handled.
TEST_F(PacedSession, AServerThatGoesDoesNotWaitForIt) {
  start(kManual, {.events_per_s = 1});
  for (int i = 0; i < 12; ++i) say(kUpdate);
  heeds(10);
  session_->messages()->end_when_idle();
  heeds(2);
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(text_in({"error", "code"}), "draining");
}

TEST(ClientEvents, ValuesAndBlanksAreCountedAndSoundMayBeLong) {
  const std::string begin = R"({"type":"input_audio_buffer.append","audio":")";
  EXPECT_TRUE(parse_client_event(begin + std::string(size_t{4} << 20, 'A') + "\"}"));
  std::string list = "1";
  for (int i = 0; i < 8192; ++i) list += ",1";
  for (const auto& [text, why] :
       {std::pair(begin + "\",\"x\":[" + list + "]}", "more than 8192 values"),
        std::pair(std::string(4097, '\n') + "x", "blanks of more than 4096 bytes"),
        std::pair(begin + "\",\"x\":" + std::string(4097, '1') + "}", "a number or blanks")}) {
    const auto refused = parse_client_event(text);
    ASSERT_FALSE(refused) << why;
    EXPECT_EQ(refused.error().error.code, "invalid_json");
    EXPECT_THAT(refused.error().error.message, HasSubstr(why));
  }
}

}  // namespace
}  // namespace syrinx::server::realtime
