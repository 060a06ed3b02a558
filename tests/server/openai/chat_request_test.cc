// The body of POST /v1/chat/completions: what is taken, and what is refused by its name.
#include "server/openai/chat_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace syrinx::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CompletionRequestOrError parse(const std::string& fields, bool strict = false) {
  const char* const messages =
      fields.find("\"messages\"") == std::string::npos ? R"("messages":[{"role":"user","content":"Hi"}])" : "";
  const bool has_both = *messages != '\0' && !fields.empty();
  return parse_chat_request("{" + std::string(messages) + (has_both ? "," : "") + fields + "}", strict);
}

std::string fault(const std::string& fields, bool strict = false) {
  const auto request = parse(fields, strict);
  if (request) return "";
  EXPECT_EQ(request.error().status, 400);
  return request.error().param + ": " + request.error().message;
}

std::string fault_of_message(const std::string& message) { return fault("\"messages\":[" + message + "]"); }

TEST(ChatRequestParser, FieldsAreTaken) {
  const auto request = parse(
      R"("model":"m","temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,"repetition_penalty":1.1,"seed":3,)"
      R"("stop":["a","b"],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true},"n":1,"user":"x")");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "m");
  const ChatSampling& sampling = request->chat.sampling;
  EXPECT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_p, 0.9f);
  EXPECT_EQ(sampling.top_k, 40);
  EXPECT_EQ(sampling.min_p, 0.05f);
  EXPECT_EQ(sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(request->chat.seed, 3U);
  EXPECT_TRUE(request->has_seed);
  EXPECT_THAT(request->chat.stops, ElementsAre("a", "b"));
  EXPECT_EQ(request->chat.max_tokens, 7U);
  EXPECT_TRUE(request->stream && request->includes_usage);
  EXPECT_THAT(request->ignored, ElementsAre());
}

TEST(ChatRequestParser, AbsentFieldsAreTheModels) {
  const auto request = parse(R"("temperature":null,"stop":null,"max_tokens":null,"stream":null,"stream_options":null)");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(request->chat.sampling.temperature || request->chat.sampling.top_p || request->chat.sampling.top_k);
  EXPECT_FALSE(request->has_seed || request->stream || request->includes_usage);
  EXPECT_EQ(request->chat.max_tokens, 0U);
}

TEST(ChatRequestParser, OtherServersValuesAreUnderstood) {
  EXPECT_EQ(parse(R"("top_k":-1)")->chat.sampling.top_k, 0);
  EXPECT_EQ(parse(R"("repeat_penalty":1.2)")->chat.sampling.repetition_penalty, 1.2f);
  EXPECT_EQ(parse(R"("seed":-1)")->chat.seed, UINT64_MAX);
  EXPECT_EQ(parse(R"("seed":-1.0)")->chat.seed, UINT64_MAX);
  EXPECT_EQ(parse(R"("seed":7.0)")->chat.seed, 7U);
  EXPECT_EQ(parse(R"("seed":1e19)")->chat.seed, 10'000'000'000'000'000'000U);
  EXPECT_TRUE(parse(R"("n":1.0,"top_k":-1.0)"));
  EXPECT_EQ(parse(R"("max_tokens":-1)")->chat.max_tokens, 0U);
  EXPECT_EQ(parse(R"("max_completion_tokens":-1.0,"max_tokens":8.0)")->chat.max_tokens, 8U);
  EXPECT_EQ(parse(R"("max_tokens":9,"max_completion_tokens":5)")->chat.max_tokens, 5U);
  EXPECT_EQ(parse(R"("max_completion_tokens":9,"max_tokens":50)")->chat.max_tokens, 9U);
  EXPECT_THAT(parse(R"("stop":"end")")->chat.stops, ElementsAre("end"));
  EXPECT_GT(*parse(R"("top_p":0)")->chat.sampling.top_p, 0);
}

TEST(ChatRequestParser, MessagesAreTextsOrParts) {
  const auto request = parse(
      R"("messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"a"},)"
      R"({"type":"text","text":"b"}]},{"role":"assistant","content":null,"refusal":null,"tool_calls":[],"audio":null}])");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->chat.messages.size(), 3U);
  EXPECT_EQ(request->chat.messages[0].role, text::ChatRole::kSystem);
  EXPECT_EQ(request->chat.messages[1].content, "a\nb");
  EXPECT_EQ(request->chat.messages[2].role, text::ChatRole::kAssistant);
  EXPECT_EQ(request->chat.messages[2].content, "");
}

TEST(ChatRequestParser, OtherContentIsRefusedByName) {
  EXPECT_THAT(fault_of_message(R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]})"),
              HasSubstr("messages: a message has a part of the type 'image_url', and images are not supported"));
  EXPECT_THAT(fault_of_message(R"({"role":"user","content":[{"type":"input_audio","input_audio":{}}]})"),
              HasSubstr("sound are not supported"));
  EXPECT_THAT(fault_of_message(R"({"role":"user","content":[{"type":"smell"}]})"), HasSubstr("type 'smell'"));
  EXPECT_THAT(fault_of_message(R"({"role":"user","content":[{"text":"x"}]})"), HasSubstr("with a 'type'"));
  EXPECT_THAT(fault_of_message(R"({"role":"user","content":[{"type":"text"}]})"), HasSubstr("has no 'text'"));
  EXPECT_THAT(fault_of_message(R"({"role":"user","content":7})"), HasSubstr("'content' of a message must be"));
  EXPECT_THAT(fault_of_message(R"({"role":"tool","content":"x"})"), HasSubstr("tools are not supported"));
  EXPECT_THAT(fault_of_message(R"({"role":"king","content":"x"})"), HasSubstr("the role 'king'"));
  EXPECT_THAT(fault_of_message(R"({"role":1,"content":"x"})"), HasSubstr("must be system, user or assistant"));
  EXPECT_THAT(fault_of_message(R"({"role":"assistant","tool_calls":[{}]})"), HasSubstr("has 'tool_calls'"));
  EXPECT_THAT(fault_of_message(R"({"role":"user","content":"x","mood":"y"})"), HasSubstr("has a field 'mood'"));
  EXPECT_THAT(fault_of_message(R"({"content":"x"})"), HasSubstr("must be an object with a 'role'"));
  EXPECT_THAT(fault_of_message("\"x\""), HasSubstr("must be an object with a 'role'"));
}

TEST(ChatRequestParser, ValuesOutOfRangeAreRefused) {
  for (const auto& [fields, why] : std::vector<std::pair<std::string, std::string>>{
           {R"("temperature":2.1)", "temperature: 'temperature' must be a number from 0 to 2"},
           {R"("top_p":-0.1)", "from 0 to 1"},
           {R"("top_k":-2)", "top_k: "},
           {R"("top_k":1.5)", "must be a whole number"},
           {R"("min_p":"a")", "min_p: "},
           {R"("repetition_penalty":3)", "repetition_penalty: "},
           {R"("seed":1.5)", "seed: "},
           {R"("max_tokens":0)", "max_tokens: "},
           {R"("max_completion_tokens":-2)", "max_completion_tokens: "},
           {R"("n":2)", "'n' must be 1"},
           {R"("n":1.5)", "'n' must be 1"},
           {R"("n":"1")", "'n' must be 1"},
           {R"("seed":1e20)", "seed: "},
           {R"("seed":-1e19)", "seed: "},
           {R"("stop":["a","b","c","d","e"])", "'stop' has 5 texts; give at most 4"},
           {R"("stop":[""])", "has 0 bytes; give 1 to 256"},
           {R"("stop":[1])", "'stop' must be"},
           {R"("stream":1)", "'stream' must be true or false"},
           {R"("stream_options":1)", "must be an object"},
           {R"("presence_penalty":2.5)", "from -2 to 2"},
           {R"("frequency_penalty":"x")", "from -2 to 2"},
           {R"("top_logprobs":21)", "from 0 to 20"},
           {R"("messages":[])", "missing or empty"},
           {R"("messages":"Hi")", "must be a list"},
           {R"("prompt":"Hi")", "there is no field 'prompt'"}})
    EXPECT_THAT(fault(fields), HasSubstr(why)) << fields;
}

TEST(ChatRequestParser, FieldsThatAskNothingAreNotNamed) {
  const auto request = parse(
      R"("presence_penalty":0,"frequency_penalty":0.0,"logit_bias":{},"logprobs":false,"tools":[],)"
      R"("tool_choice":"auto","parallel_tool_calls":true,"response_format":{"type":"text"},"modalities":["text"])",
      /*strict=*/true);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(request->ignored, ElementsAre());
}

TEST(ChatRequestParser, LackingFieldsAreIgnoredOrRefused) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"presence_penalty", "1"},
           {"logit_bias", R"({"5":1})"},
           {"logprobs", "true"},
           {"tools", R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])"},
           {"tool_choice", "\"required\""},
           {"response_format", R"({"type":"json_schema","json_schema":{}})"},
           {"response_format", R"({"type":"json_object"})"},
           {"reasoning_effort", "\"low\""},
           {"audio", R"({"voice":"x"})"}}) {
    const std::string field = "\"" + name + "\":" + value;
    EXPECT_THAT(parse(field)->ignored, ElementsAre(name));
    EXPECT_THAT(fault(field, /*strict=*/true), HasSubstr(name + ": '" + name + "' is not supported: ")) << name;
  }
}

std::string messages(size_t count, const std::string& content) {
  std::string list = "\"messages\":[";
  for (size_t i = 0; i < count; ++i)
    list += (i > 0 ? "," : "") + std::string(R"({"role":"user","content":")") + content + "\"}";
  return list + "]";
}

TEST(ChatRequestParser, LongConversationsAreRefusedBySize) {
  EXPECT_EQ(fault(messages(1024, "x")), "");
  EXPECT_THAT(fault(messages(10000, "x")), HasSubstr("'messages' has 10000 messages; give at most 1024"));
  EXPECT_THAT(fault(messages(3, std::string(1 << 20, 'x'))), HasSubstr("the limit is 2097152; leave older ones out"));
}

TEST(ChatRequestParser, OtherThanJsonIsRefused) {
  for (const char* body : {"", "[]", "{", "\"x\"", "{\"messages\":\"\xff\"}"}) {
    const auto request = parse_chat_request(body, false);
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().code, "invalid_json") << body;
  }
}

TEST(ChatRequestParser, HalfCharactersAreLeftOut) {
  const auto request = parse(R"("messages":[{"role":"user","content":"a\ud83d b"}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->chat.messages[0].content, "a b");
}

TEST(ChatRequestParser, ReplacementCharacterIsKept) {
  const auto request = parse("\"messages\":[{\"role\":\"user\",\"content\":\"a\uFFFD \\ufffd\\ud83d\"}]");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->chat.messages[0].content, "a\uFFFD \uFFFD");
}

TEST(ChatRequestParser, RefusalOfAssistantIsItsText) {
  const auto request = parse(R"("messages":[{"role":"assistant","content":[{"type":"refusal","refusal":"I cannot."}]},)"
                             R"({"role":"user","content":"Why?"}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->chat.messages[0].content, "I cannot.");
}

}  // namespace
}  // namespace syrinx::server
