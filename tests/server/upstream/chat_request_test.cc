// The request sent upstream, its settings, and the reading of an answer.
#include "server/upstream/chat_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "server/upstream/chat_replies.h"
#include "server/upstream/upstream_settings.h"
#include "tests/base/temp_folder.h"
#include "tests/server/upstream/chat_endpoint.h"

namespace syrinx::server::upstream {
namespace {

using testing::HasSubstr;
using testing::Not;

realtime::Turn said(const std::string& role, const std::string& text) { return {.role = role, .text = text}; }

TEST(ChatRequest, TheConversationIsSentInItsOrder) {
  const realtime::Prompt prompt{.turns = {said("system", "Now."), said("user", "Hi \"you\""), said("assistant", ""),
                                          said("assistant", "Hello."), said("user", "Why?")}};
  EXPECT_EQ(chat_body(prompt, {.model = "m", .instructions = "Be brief."}),
            R"({"model":"m","messages":[{"role":"system","content":"Be brief.\nNow."},)"
            R"({"role":"user","content":"Hi \"you\""},{"role":"assistant","content":"Hello."},)"
            R"({"role":"user","content":"Why?"}],"stream":true})");
  EXPECT_EQ(chat_body({.instructions = "Mine.", .max_tokens = 7}, {.instructions = "Be brief."}),
            R"({"messages":[{"role":"system","content":"Mine."}],"stream":true,"max_tokens":7})");
  EXPECT_THAT(chat_body({.max_tokens = 7}, {.max_tokens_field = "max_completion_tokens"}),
              testing::EndsWith(R"("stream":true,"max_completion_tokens":7})"));
}

TEST(ChatRequest, OfALongConversationTheNewestIsSent) {
  const realtime::Prompt prompt{.turns = {said("user", "aaaa"), said("assistant", "bbbb"), said("user", "ññññ")}};
  const auto body = [&](size_t items, size_t characters) {
    return chat_body(prompt, {.max_items = items, .max_characters = characters});
  };
  EXPECT_THAT(body(3, 12), HasSubstr("aaaa"));
  for (const std::string& shorter : {body(2, 12), body(3, 11), body(3, 1)})  // no answer without its question
    EXPECT_THAT(shorter, HasSubstr(R"("messages":[{"role":"user","content":"ññññ"}])"));
  EXPECT_THAT(chat_body({.turns = {said("user", "aaaa"), said("assistant", "bbbb")}}, {.max_items = 1}),
              HasSubstr(R"("messages":[{"role":"assistant","content":"bbbb"}])"));
}

// As the templates of Gemma and Mistral want them.
TEST(ChatRequest, RolesAlternate) {
  EXPECT_THAT(
      chat_body({.turns = {said("user", "What is the capital"), said("assistant", ""), said("user", "of Ontario?"),
                           said("assistant", "Toronto."), said("assistant", "It is."), said("user", "Thanks.")}},
                {}),
      HasSubstr(R"("messages":[{"role":"user","content":"What is the capital\nof Ontario?"},)"
                R"({"role":"assistant","content":"Toronto.\nIt is."},{"role":"user","content":"Thanks."}])"));
  const realtime::Prompt told{
      .turns = {said("user", "Q1"), said("system", "In French."), said("assistant", "A1"), said("user", "Q2")}};
  EXPECT_THAT(chat_body(told, {.instructions = "Be brief.", .max_items = 3}),
              HasSubstr(R"("messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Q2"}])"));
  EXPECT_THAT(chat_body(told, {.instructions = "Be brief."}),
              HasSubstr(R"("messages":[{"role":"system","content":"Be brief.\nIn French."},)"
                        R"({"role":"user","content":"Q1"},{"role":"assistant","content":"A1"},)"));
  EXPECT_THAT(
      chat_body({.turns = {said("assistant", "Hello, who is there?"), said("user", "Me.")}}, {}),
      HasSubstr(R"("messages":[{"role":"assistant","content":"Hello, who is there?"},)"));  // what is there is sent
}

TEST(ChatRequest, WithoutAWordThereIsNothingToAnswer) {
  EXPECT_FALSE(asks_something({.turns = {said("user", "")}}));
  EXPECT_TRUE(asks_something({.turns = {said("user", "x")}}));
  EXPECT_TRUE(asks_something({.instructions = "Greet whoever comes."}));
}

TEST(UpstreamSettings, AnAddressIsOneOfAnInterface) {
  Settings settings;
  for (const char* const good : {"http://127.0.0.1:11434/v1", "https://example.org", "http://[::1]:8000/v1/"}) {
    settings.upstream = good;
    EXPECT_TRUE(check_upstream(settings)) << good;
  }
  for (const char* const bad :
       {"example.org", "ftp://x/v1", "http://", "http:///v1", "http://a:0/", "http://a:x/", "http://a:/",
        "http://me:secret@a/v1", "http://a/v1?key=secret", "http://a b/", "http://[::1/", "http://\xc3\xbc/"}) {
    settings.upstream = bad;
    const Status status = check_upstream(settings);
    ASSERT_FALSE(status) << bad;
    EXPECT_THAT(status.error().message, HasSubstr("'upstream'"));
    EXPECT_THAT(status.error().message, Not(HasSubstr("secret")));
  }
  settings.upstream = "http://a/v1";
  settings.speech_model = "";
  EXPECT_THAT(check_upstream(settings).error().message, HasSubstr("speech_model"));
  EXPECT_THAT(check_upstream({.upstream_key_file = "key"}).error().message,
              HasSubstr("'upstream_key_file' is set without"));
}

TEST(UpstreamSettings, FilesAreReadAndTheirFaultsNamed) {
  const TempFolder folder;
  const auto file = [&](const char* name, const std::string& content) {
    std::ofstream(folder.path() + "/" + name) << content;
    return folder.path() + "/" + name;
  };
  Settings settings{.upstream = "http://127.0.0.1:1/v1/"};
  settings.upstream_key_file = file("key", "  sk-1\n");
  settings.upstream_max_tokens_field = "max_completion_tokens";
  const auto loaded = load_upstream(settings);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->endpoint.key, "sk-1");
  EXPECT_EQ(loaded->form.max_tokens_field, "max_completion_tokens");
  EXPECT_EQ(loaded->endpoint.url, "http://127.0.0.1:1/v1/chat/completions");
  for (const std::string& bad :
       {std::string(), std::string("sk-1\nX-Other: sk-1"), std::string("sk 1"), std::string(5000, 'x')}) {
    settings.upstream_key_file = file("bad", bad);
    const auto refused = load_upstream(settings);
    ASSERT_FALSE(refused) << bad;
    EXPECT_THAT(refused.error().message, HasSubstr("'upstream_key_file'"));
    EXPECT_THAT(refused.error().message, Not(HasSubstr("sk")));
  }
  settings.upstream_key_file = "";
  for (const char* const bad : {"nothing", "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n"}) {
    settings.upstream_ca_file = file("ca", bad);
    const auto refused = load_upstream(settings);
    ASSERT_FALSE(refused) << bad;
    EXPECT_THAT(refused.error().message, HasSubstr("holds no certificate"));
  }
  settings.upstream_ca_file = folder.path() + "/none";
  EXPECT_THAT(load_upstream(settings).error().message, HasSubstr("'upstream_ca_file'"));
}

// All of it, and why it is not more.
std::pair<std::string, std::string> answer_to(const std::string& url, size_t max_characters) {
  auto replies = ChatReplies::start(
      {.endpoint = {.url = url + "/chat/completions", .max_answer_bytes = 1 << 20}, .max_characters = max_characters});
  EXPECT_TRUE(replies);
  const auto reply = (*replies)->start({.turns = {said("user", "Hi")}}, [] {});
  EXPECT_TRUE(reply);
  std::string text;
  for (auto more = (*reply)->take(text); more && *more; more = (*reply)->take(text)) std::this_thread::yield();
  return {text, (*reply)->cut_short() != nullptr ? (*reply)->cut_short() : ""};
}

TEST(ChatReplies, TooLongAnswerIsCut) {
  const ChatEndpoint endpoint([](const ChatEndpoint::Answer& answer) {
    answer.begin();
    for (int i = 0; i < 3; ++i) answer.say("äöü");
    answer.done();
  });
  EXPECT_EQ(answer_to(endpoint.url(), 9), std::pair(std::string("äöüäöüäöü"), std::string()));
  EXPECT_EQ(answer_to(endpoint.url(), 8), std::pair(std::string("äöüäöüäö"), std::string("max_output_tokens")));
}

// From the settings to the endpoint, and back.
TEST(ChatReplies, SettingsLimitQuestionAndAnswer) {
  const ChatEndpoint endpoint([](const ChatEndpoint::Answer& answer) {
    answer.begin();
    for (int i = 0; i < 40; ++i) answer.say("word");  // of 2 kB with all that is around it
    answer.done();
  });
  const auto ask = [&](int64_t characters, int64_t kilobytes) {
    auto upstream = load_upstream(
        {.upstream = endpoint.url(), .upstream_max_answer_kb = kilobytes, .upstream_history_characters = characters});
    EXPECT_TRUE(upstream) << upstream.error().message;
    const auto replies = ChatReplies::start(std::move(*upstream));
    EXPECT_TRUE(replies) << replies.error().message;
    const auto reply = (*replies)->start({.turns = {said("user", "aaaa"), said("user", "bbbb")}}, [] {});
    EXPECT_TRUE(reply) << reply.error().message;
    std::string text;
    auto more = (*reply)->take(text);
    for (; more && *more; more = (*reply)->take(text)) std::this_thread::yield();
    return more ? text : more.error().message;
  };
  EXPECT_THAT(ask(8, 4), testing::StartsWith("wordword"));
  EXPECT_THAT(endpoint.requests().back(), HasSubstr("aaaa"));
  EXPECT_THAT(ask(7, 1), HasSubstr("'upstream_max_answer_kb'"));
  EXPECT_THAT(endpoint.requests().back(), Not(HasSubstr("aaaa")));
  EXPECT_THAT(endpoint.requests().back(), HasSubstr("bbbb"));
}

TEST(ChatReplies, TextBeforeAFaultIsKept) {
  const ChatEndpoint endpoint([](const ChatEndpoint::Answer& answer) {
    answer.begin();
    answer.say("Half");
  });
  auto replies = ChatReplies::start(
      {.endpoint = {.url = endpoint.url() + "/chat/completions", .max_answer_bytes = 1 << 20}, .max_characters = 99});
  ASSERT_TRUE(replies);
  std::atomic<int> rung{0};
  const auto reply = (*replies)->start({.turns = {said("user", "Hi")}}, [&] { ++rung; });
  ASSERT_TRUE(reply);
  while (rung < 1) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // mostly the fault has come by then, too
  std::string text;
  auto more = (*reply)->take(text);
  EXPECT_TRUE(more);
  EXPECT_EQ(text, "Half");
  while (more && *more) more = (*reply)->take(text);
  ASSERT_FALSE(more);
  EXPECT_EQ(text, "Half");
}

TEST(ChatReplies, NothingIsNotAsked) {
  const auto replies = ChatReplies::start({.endpoint = {.url = "http://127.0.0.1:1/chat/completions"}});
  ASSERT_TRUE(replies);
  const auto reply = (*replies)->start({}, [] {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace syrinx::server::upstream
