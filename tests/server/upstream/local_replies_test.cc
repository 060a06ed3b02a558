// Sessions of /v1/realtime that the server's own language model answers.
#include "server/upstream/local_replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "server/upstream/capped_reply.h"
#include "tests/server/host/chat_service.h"

namespace syrinx::server::upstream {
namespace {

using testing::HasSubstr;

realtime::Turn said(const std::string& role, const std::string& text) { return {.role = role, .text = text}; }

class LocalRepliesTest : public ChatServiceTest {
 protected:
  std::unique_ptr<realtime::Reply> ask(realtime::Prompt prompt) {
    LocalReplies replies(upstream_, *service_, clock_);
    auto reply = replies.start(std::move(prompt), [this] { ++woken_; });
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? std::move(*reply) : nullptr;
  }
  // All of it; what went wrong is in fault_.
  std::string all(realtime::Reply& reply) {
    std::string text;
    const Stopwatch waited;
    for (bool goes_on = true; goes_on;) {
      const Result<bool> more = reply.take(text);
      if (!more) fault_ = more.error();
      goes_on = more && *more && waited.elapsed_ms() < kPatienceMs;
      if (const auto again = reply.looks_again_in()) clock_.advance_ns(again->count());
      std::this_thread::yield();
    }
    return text;
  }

  LocalUpstream upstream_{.form = {.instructions = "Be brief."}, .max_characters = 1000};
  ManualClock clock_;
  std::atomic<int> woken_{0};
  std::optional<Error> fault_;
};

TEST_F(LocalRepliesTest, TurnsBecomeMessages) {
  start();
  const auto reply = ask({.turns = {said("user", "One"), said("user", "two"), said("assistant", "Three."),
                                    said("system", "In French."), said("user", "Four")},
                          .max_tokens = 9});
  EXPECT_EQ(all(*reply), "Hello there.");
  EXPECT_EQ(reply->cut_short(), nullptr);
  EXPECT_GE(woken_, 1);
  const ChatRequest asked = engine_->asked().back();
  EXPECT_EQ(asked.max_tokens, 9U);
  std::string messages;
  for (const text::ChatMessage& message : asked.messages)
    messages += std::string(text::chat_role_name(message.role)) + "=" + message.content + ";";
  EXPECT_EQ(messages, "system=Be brief.\nIn French.;user=One\ntwo;assistant=Three.;user=Four;");
}

TEST_F(LocalRepliesTest, LimitIsToldAsReason) {
  start();
  const auto reply = ask({.turns = {said("user", "Hi")}, .max_tokens = 2});
  EXPECT_EQ(all(*reply), "Hello ");
  EXPECT_STREQ(reply->cut_short(), "max_output_tokens");
}

TEST_F(LocalRepliesTest, LongAnswerIsCutAndFreesSlot) {
  upstream_.max_characters = 4;
  start();
  engine_->tokens = {"Hello ", "there."};
  engine_->holds = true;  // the rest would never come
  const auto reply = ask({.turns = {said("user", "Hi")}});
  EXPECT_EQ(all(*reply), "Hell");
  EXPECT_STREQ(reply->cut_short(), "max_output_tokens");
  wait_for([&] { return engine_->open_ == 0; });
}

TEST_F(LocalRepliesTest, DestroyedReplyFreesSlot) {
  start();
  engine_->holds = true;
  auto reply = ask({.turns = {said("user", "Hi")}});
  wait_for([&] { return engine_->open_ == 1 && woken_ == 1; });
  reply.reset();
  wait_for([&] { return get("/ready").find(R"("chat":{"slots":2,"free_slots":2})") != std::string::npos; });
  EXPECT_EQ(engine_->open_, 0);
}

TEST_F(LocalRepliesTest, BusySlotsFailReplyAtLast) {
  start();
  engine_->holds = true;
  const auto first = ask({.turns = {said("user", "Hi")}}), second = ask({.turns = {said("user", "Hi")}});
  EXPECT_FALSE(first->looks_again_in());
  const auto third = ask({.turns = {said("user", "Hi")}});
  EXPECT_EQ(all(*third), "");
  ASSERT_TRUE(fault_);
  EXPECT_EQ(fault_->code, Code::kUnavailable);
  EXPECT_THAT(fault_->message, HasSubstr("all 2 slots are busy"));
  EXPECT_GE(clock_.now_ms(), 2000);
  EXPECT_LT(clock_.now_ms(), 2200);
  EXPECT_FALSE(third->looks_again_in());
}

// As of response.create behind response.cancel.
TEST_F(LocalRepliesTest, FreedSlotAnswersWaitingReply) {
  settings_.chat_slots = 1;
  start();
  engine_->holds = true;
  auto first = ask({.turns = {said("user", "Hi")}});
  wait_for([&] { return engine_->open_ == 1; });
  const auto second = ask({.turns = {said("user", "Hi")}});
  std::string text;
  const auto waits = second->take(text);
  ASSERT_TRUE(waits && *waits);
  ASSERT_TRUE(second->looks_again_in());
  EXPECT_LE(*second->looks_again_in(), std::chrono::milliseconds(10));
  first.reset();
  wait_for([&] { return get("/ready").find(R"("chat":{"slots":1,"free_slots":1})") != std::string::npos; });
  engine_->holds = false;
  EXPECT_EQ(all(*second), "Hello there.");
  EXPECT_FALSE(fault_);
}

TEST_F(LocalRepliesTest, OtherRefusalsFailAtOnce) {
  upstream_.model = "another";
  start();
  const auto reply = ask({.turns = {said("user", "Hi")}});
  EXPECT_FALSE(reply->looks_again_in());
  std::string text;
  EXPECT_FALSE(reply->take(text));
}

// All that there is, a fault behind it.
class BrokenReply final : public realtime::Reply {
 public:
  Result<bool> take(std::string& text) override {
    text += "Hel";
    return fail(Code::kUnavailable, "broken");
  }
};

TEST(CappedReply, FaultBehindTextIsLookedFor) {
  realtime::SpokenReply reply(std::make_unique<CappedReply>(std::make_unique<BrokenReply>(), 100));
  EXPECT_FALSE(reply.looks_again_in());
  std::string text;
  const auto taken = reply.take(text);
  ASSERT_TRUE(taken && *taken);
  ASSERT_TRUE(reply.looks_again_in());
  EXPECT_EQ(reply.looks_again_in()->count(), 0);
  EXPECT_EQ(reply.take(text).error().message, "broken");
}

TEST_F(LocalRepliesTest, FaultIsToldBehindText) {
  start();
  engine_->fault = Error{Code::kInternal, "broken"};
  const auto reply = ask({.turns = {said("user", "Hi")}});
  EXPECT_EQ(all(*reply), "Hel");
  ASSERT_TRUE(fault_);
  EXPECT_EQ(fault_->code, Code::kUnavailable);
}

TEST_F(LocalRepliesTest, NothingToAnswerIsRefused) {
  start();
  LocalReplies replies(upstream_, *service_);
  const auto reply = replies.start({.turns = {said("user", "")}}, [] {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kInvalidArgument);
  EXPECT_THAT(reply.error().message, HasSubstr("nothing to be answered"));
}

// A talk that outgrows the model's context goes on without its beginning.
TEST_F(LocalRepliesTest, OldestTurnsOfLongTalkGo) {
  engine_->most_tokens = 24;
  start();
  realtime::Prompt prompt;
  for (int i = 0; i < 8; ++i) {
    prompt.turns.push_back(said("user", fmt::format("question number {}", i)));
    prompt.turns.push_back(said("assistant", fmt::format("answer number {}", i)));
  }
  prompt.turns.push_back(said("user", "the last question"));
  EXPECT_EQ(all(*ask(prompt)), "Hello there.");
  EXPECT_FALSE(fault_);
  const auto messages = engine_->asked().back().messages;
  ASSERT_GE(messages.size(), 4U);
  EXPECT_EQ(messages[0].content, "Be brief.");
  EXPECT_EQ(messages[1].role, text::ChatRole::kUser);
  EXPECT_EQ(messages.back().content, "the last question");
  EXPECT_LE(FakeChatEngine::tokens_of(engine_->asked().back()), 24U - 24 / 4);  // with room for an answer
}

TEST_F(LocalRepliesTest, OneTurnTooLongFails) {
  engine_->most_tokens = 8;
  start();
  const auto reply = ask({.turns = {said("user", "a b c d e f g h i j k")}});
  EXPECT_EQ(all(*reply), "");
  ASSERT_TRUE(fault_);
  EXPECT_EQ(fault_->code, Code::kInvalidArgument);
}

Status checked(Settings settings) {
  settings.recognition_model = "";
  settings.speech_model = "speaks";
  return check_upstream(settings);
}

TEST(LocalUpstreamSettings, NameMustFitModel) {
  Settings settings;
  settings.chat_model = "/models/talks.gguf";
  for (const char* upstream : {"local:", "local:talks"}) {
    settings.upstream = upstream;
    EXPECT_TRUE(checked(settings)) << upstream;
    EXPECT_TRUE(is_local(settings));
  }
  settings.upstream = "local:other";
  EXPECT_THAT(checked(settings).error().message, HasSubstr("the language model is called 'talks'"));
  settings.chat_model = "";
  EXPECT_THAT(checked(settings).error().message, HasSubstr("name one as 'chat_model'"));
}

TEST(LocalUpstreamSettings, SettingsOfAddressesAreRefused) {
  for (std::string Settings::*const member :
       {&Settings::upstream_model, &Settings::upstream_key_file, &Settings::upstream_ca_file}) {
    Settings settings;
    settings.chat_model = "talks";
    settings.upstream = "local:";
    settings.*member = "x";
    EXPECT_THAT(checked(settings).error().message, HasSubstr("is for an upstream at an address"));
  }
}

}  // namespace
}  // namespace syrinx::server::upstream
