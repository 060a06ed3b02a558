// Messages as clients write them: texts, parts, and fields beside them.
#include "text/chat/chat_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace syrinx::text {
namespace {

using testing::HasSubstr;

Result<ChatMessage> parse(const std::string& json) { return parse_chat_message(*parse_json(json, "a message")); }

std::string content_of(const std::string& content) {
  const auto message = parse(R"({"role":"user","content":)" + content + "}");
  return message ? message->content : message.error().message;
}

Error fault_of(const std::string& json) {
  const auto message = parse(json);
  return message ? Error{Code::kInternal, "taken"} : message.error();
}

TEST(ChatMessageParser, TextsAndListsOfTexts) {
  EXPECT_EQ(content_of("\"a\""), "a");
  EXPECT_EQ(content_of("null"), "");
  EXPECT_EQ(content_of("[]"), "");
  EXPECT_EQ(content_of("\"\uFFFD\""), "\uFFFD");
  EXPECT_EQ(content_of(R"([{"type":"text","text":"a"},{"type":"input_text","text":"b"}])"), "a\nb");
  EXPECT_EQ(content_of(R"([{"type":"output_text","text":"a"},{"type":"refusal","refusal":"No."}])"), "a\nNo.");
}

TEST(ChatMessageParser, RolesAreKnown) {
  for (const auto& [name, role] : {std::pair{"system", ChatRole::kSystem},
                                   {"developer", ChatRole::kSystem},
                                   {"user", ChatRole::kUser},
                                   {"assistant", ChatRole::kAssistant}})
    EXPECT_EQ(parse(R"({"content":"a","role":")" + std::string(name) + "\"}")->role, role);
}

TEST(ChatMessageParser, FieldsOfAnswersArePassedOver) {
  const auto message = parse(
      R"({"role":"assistant","content":"a","refusal":"b","annotations":[{}],"tool_calls":[],"audio":null,"id":"c",)"
      R"("reasoning_content":"d","mood":"","type":"message","timestamp":5})");
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->content, "a");
}

TEST(ChatMessageParser, OtherContentIsRefusedByName) {
  for (const auto& [content, why] : {std::pair{R"([{"type":"image_url","image_url":"x"}])", "images are not supported"},
                                     {R"([{"type":"input_audio"}])", "sound are not supported"},
                                     {R"([{"type":"smell"}])", "a part of the type 'smell'"},
                                     {R"([{"text":"x"}])", "with a 'type'"},
                                     {R"(["a"])", "with a 'type'"},
                                     {R"([{"type":"text","text":1}])", "has no 'text'"},
                                     {R"([{"type":"refusal","text":"x"}])", "has no 'refusal'"},
                                     {"7", "must be a text or a list of parts of text"},
                                     {"{}", "must be a text or a list of parts of text"}})
    EXPECT_THAT(content_of(content), HasSubstr(why)) << content;
}

TEST(ChatMessageParser, FaultsHaveCodes) {
  EXPECT_EQ(fault_of("1").code, Code::kDataLoss);
  EXPECT_EQ(fault_of(R"({"content":"a"})").code, Code::kDataLoss);
  EXPECT_EQ(fault_of(R"({"role":1,"content":"a"})").code, Code::kDataLoss);
  EXPECT_EQ(fault_of(R"({"role":"tool","content":"a"})").code, Code::kUnsupported);
  EXPECT_EQ(fault_of(R"({"role":"judge","content":"a"})").code, Code::kInvalidArgument);
  EXPECT_EQ(fault_of(R"({"role":"user","content":"a","images":["x"]})").code, Code::kUnsupported);
  EXPECT_EQ(fault_of(R"({"role":"user","content":"a","mood":"x"})").code, Code::kInvalidArgument);
  EXPECT_EQ(fault_of(R"({"role":"user","content":[{"type":"file"}]})").code, Code::kUnsupported);
}

}  // namespace
}  // namespace syrinx::text
