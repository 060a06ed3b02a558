#include "server/upstream/chat_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace syrinx::server::upstream {
namespace {

using testing::HasSubstr;

// As OpenAI's own endpoint writes it.
std::string piece(const std::string& content) {
  return R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":")" +
         content + "\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n";
}
std::string finish(const std::string& reason) {
  return R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":")" + reason + "\"}]}\n\n";
}
constexpr const char* kRole =
    "data: "
    "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"finish_reason\":"
    "null}]}\n\n";
constexpr const char* kUsage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":9}}\n\n";
constexpr const char* kDone = "data: [DONE]\n\n";

TEST(ChatStream, TheTextIsTheSameHoweverItsBytesAreCut) {
  const std::string all = kRole + piece("Grüß dich, ") + ": a comment\n\n" + piece("wie geht\\u00b4s? \\ud83d\\ude00") +
                          piece("世界") + finish("stop") + kUsage + kDone;
  for (const char* const newline : {"\n", "\r\n", "\r"}) {
    std::string sent;
    for (const char c : all) sent += c == '\n' ? std::string(newline) : std::string(1, c);
    for (size_t step = 1; step <= sent.size(); step = step < 9 ? step + 1 : step * 2) {
      ChatStream stream;
      std::string text;
      for (size_t at = 0; at < sent.size(); at += step)
        ASSERT_TRUE(stream.feed(std::string_view(sent).substr(at, step), text));
      EXPECT_EQ(text, "Grüß dich, wie geht´s? 😀世界") << step;
      EXPECT_TRUE(stream.is_whole() && stream.is_over());
      EXPECT_EQ(stream.cut_short(), nullptr);
    }
  }
}

TEST(ChatStream, TheTextComesWithItsEvents) {
  ChatStream stream;
  std::string text;
  ASSERT_TRUE(stream.feed(piece("One.") + "data: {\"choices\":", text));
  EXPECT_EQ(text, "One.");
  EXPECT_FALSE(stream.is_whole());
}

TEST(ChatStream, ACharacterInTwoEventsIsWhole) {
  ChatStream stream;
  std::string text;
  ASSERT_TRUE(stream.feed(piece("a\xe4\xb8"), text));
  EXPECT_EQ(text, "a");
  ASSERT_TRUE(stream.feed(piece("\x96"
                                "b\xff"
                                "c"),
                          text));
  EXPECT_EQ(text,
            "a世b\xef\xbf\xbd"
            "c");
}

TEST(ChatStream, AnEventOfSeveralLinesIsOne) {
  ChatStream stream;
  std::string text;
  ASSERT_TRUE(stream.feed("event: x\ndata:{\"choices\":[{\ndata: \"delta\":{\"content\":\"Hi\"}}]}\nid: 4\n\n", text));
  EXPECT_EQ(text, "Hi");
}

TEST(ChatStream, WhyItEndsIsKnown) {
  for (const auto& [reason, expected] :
       {std::pair("length", "max_output_tokens"), {"content_filter", "content_filter"}}) {
    ChatStream stream;
    std::string text;
    ASSERT_TRUE(stream.feed(piece("Hi") + finish(reason), text));
    EXPECT_TRUE(stream.is_whole());
    EXPECT_STREQ(stream.cut_short(), expected);
  }
}

TEST(ChatStream, InvalidAnswersAreRefused) {
  for (const std::string bad : {"data: {\"choices\"", "data: 7", "data: \xff", "data: []"}) {
    ChatStream stream;
    std::string text;
    const Status status = stream.feed(bad + "\n\n", text);
    ASSERT_FALSE(status) << bad;
    EXPECT_EQ(status.error().code, Code::kUnavailable);
    EXPECT_THAT(status.error().message, HasSubstr("not a stream of chat completions"));
  }
  ChatStream stream;
  std::string text;
  const Status told = stream.feed("data: {\"error\":{\"message\":\"secret-key is wrong\"}}\n\n", text);
  ASSERT_FALSE(told);
  EXPECT_THAT(told.error().message, testing::Not(HasSubstr("secret-key")));
}

TEST(ChatStream, ALineOrAnEventHasALimit) {
  const std::string much(ChatStream::kMaxEventBytes / 2 + 1, 'x');
  ChatStream line, event;
  std::string text;
  ASSERT_TRUE(line.feed(much, text));
  EXPECT_FALSE(line.feed(much, text));
  ASSERT_TRUE(event.feed("data: " + much + "\n", text));
  EXPECT_FALSE(event.feed("data: " + much + "\n", text));
}

// A megabyte of either would take the parser thirty.
TEST(ChatStream, AnEventsValuesAndBlanksHaveALimit) {
  const std::string choice = R"("choices":[{"delta":{"content":"Hi"}}])";
  std::string list = "1";
  for (int i = 0; i < 65536; ++i) list += ",1";
  ChatStream good, values, blanks;
  std::string text;
  EXPECT_TRUE(good.feed("data: {\"x\":[1,1]," + choice + "}\n\n", text));
  EXPECT_FALSE(values.feed("data: {\"x\":[" + list + "]," + choice + "}\n\n", text));
  EXPECT_FALSE(blanks.feed("data: {" + std::string(4097, ' ') + choice + "}\n\n", text));
}

}  // namespace
}  // namespace syrinx::server::upstream
