// Conversations that are answered over HTTP: what the client is told, what it frees when it leaves, metrics and log.
#include "server/host/chat_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/host/chat_service.h"
#include "tests/server/host/listed_model.h"

namespace syrinx::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHi = R"({"messages":[{"role":"user","content":"Hi there"}])";

std::string hi(const std::string& fields = "") { return kHi + fields + "}"; }

const Json& at(const Json& json, std::initializer_list<const char*> path) {
  static const Json nothing;
  const Json* found = &json;
  for (const char* key : path) {
    if (found != nullptr && found->array() != nullptr)
      found = found->array()->empty() ? nullptr : &found->array()->front();
    found = found == nullptr ? nullptr : found->find(key);
  }
  return found == nullptr ? nothing : *found;
}

class ChatJobTest : public ChatServiceTest {
 protected:
  // The data of the events of a stream.
  std::vector<std::string> events(const std::string& body) {
    std::vector<std::string> data;
    const std::string sent = read(post(body));
    for (size_t begin = 0, end = 0; (end = sent.find("\n\n", begin)) != std::string::npos; begin = end + 2)
      data.push_back(sent.substr(begin, end - begin));
    return data;
  }
  double value(const std::string& series) {
    const std::string text = get("/metrics");
    const size_t found = text.find("\n" + series + " ");
    EXPECT_NE(found, std::string::npos) << series;
    return found == std::string::npos ? -1 : std::stod(text.substr(found + series.size() + 2));
  }
};

TEST_F(ChatJobTest, WholeAnswerHasReasonAndUsage) {
  start();
  const Json json = answer(hi());
  EXPECT_EQ(at(json, {"object"}).dump(), "\"chat.completion\"");
  EXPECT_THAT(*at(json, {"id"}).string(), testing::StartsWith("chatcmpl-"));
  EXPECT_EQ(at(json, {"model"}).dump(), "\"talks\"");
  EXPECT_EQ(at(json, {"choices", "message"}).dump(), R"({"role":"assistant","content":"Hello there.","refusal":null})");
  EXPECT_EQ(at(json, {"choices", "finish_reason"}).dump(), "\"stop\"");
  EXPECT_EQ(
      at(json, {"usage"}).dump(),
      R"({"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":1}})");
}

TEST_F(ChatJobTest, StreamHasRoleTextReasonDone) {
  start();
  const std::vector<std::string> data = events(hi(R"(,"stream":true)"));
  EXPECT_EQ(head_.type, "text/event-stream");
  ASSERT_EQ(data.size(), 6U);
  std::vector<std::string> choices;
  for (size_t i = 0; i + 1 < data.size(); ++i) {
    const Json json = *parse_json(data[i].substr(6), "the event");
    EXPECT_EQ(json.find("usage"), nullptr);
    EXPECT_EQ(at(json, {"object"}).dump(), "\"chat.completion.chunk\"");
    choices.push_back(at(json, {"choices", "delta"}).dump() + at(json, {"choices", "finish_reason"}).dump());
  }
  EXPECT_THAT(choices, ElementsAre(R"({"role":"assistant","content":""}null)", R"({"content":"Hel"}null)",
                                   R"({"content":"lo "}null)", R"({"content":"there."}null)", R"({}"stop")"));
  EXPECT_EQ(data.back(), "data: [DONE]");
  EXPECT_TRUE(has_finished_);
}

TEST_F(ChatJobTest, StreamTellsUsageWhenAsked) {
  start();
  const std::vector<std::string> data = events(hi(R"(,"stream":true,"stream_options":{"include_usage":true})"));
  ASSERT_EQ(data.size(), 7U);
  EXPECT_THAT(data[0], HasSubstr("\"usage\":null"));
  const Json last = *parse_json(data[5].substr(6), "the event");
  EXPECT_EQ(at(last, {"choices"}).dump(), "[]");
  EXPECT_EQ(at(last, {"usage", "completion_tokens"}).dump(), "4");
}

TEST_F(ChatJobTest, LimitAndStopTextEndAnswer) {
  start();
  const Json cut = answer(hi(R"(,"max_tokens":2)"));
  EXPECT_EQ(at(cut, {"choices", "message", "content"}).dump(), "\"Hello \"");
  EXPECT_EQ(at(cut, {"choices", "finish_reason"}).dump(), "\"length\"");
  const Json stopped = answer(hi(R"(,"stop":["lo th"])"));
  EXPECT_EQ(at(stopped, {"choices", "message", "content"}).dump(), "\"Hel\"");
  EXPECT_EQ(at(stopped, {"choices", "finish_reason"}).dump(), "\"stop\"");
}

TEST_F(ChatJobTest, EngineGetsRequestAsAsked) {
  start();
  answer(hi(R"(,"seed":9,"temperature":0.5,"max_tokens":1000)"));
  const ChatRequest first = engine_->asked().back();
  EXPECT_EQ(first.seed, 9U);
  EXPECT_EQ(first.sampling.temperature, 0.5f);
  EXPECT_EQ(first.max_tokens, 0U) << "more than the context is no limit";
  answer(hi());
  const uint64_t seed = engine_->asked().back().seed;
  answer(hi());
  EXPECT_NE(engine_->asked().back().seed, seed) << "another answer each time";
}

TEST_F(ChatJobTest, ClientThatLeavesFreesSlot) {
  start();
  engine_->holds = true;
  for (const char* form : {R"(,"stream":true)", ""}) {
    const HttpReply reply = post(hi(form));
    ASSERT_NE(reply.stream, nullptr);
    wait_for([&] { return engine_->open_ == 1; });
    reply.stream->cancel();
    wait_for([&] {
      return engine_->open_ == 0 && get("/ready").find(R"("chat":{"slots":2,"free_slots":2})") != std::string::npos;
    });
  }
  wait_for([&] { return value(R"(syrinx_answers_total{model="talks",reason="cancelled"})") == 2; });
}

TEST_F(ChatJobTest, BusySlotsRefuse) {
  start();
  engine_->holds = true;
  const HttpReply first = post(hi()), second = post(hi());
  const HttpReply refused = post(hi());
  EXPECT_EQ(refused.status, 503);
  ASSERT_NE(refused.error, nullptr);
  EXPECT_EQ(refused.error->code, "no_free_slot");
  EXPECT_EQ(refused.error->retry_after_s, 1);
  EXPECT_THAT(get("/ready", "slots=chat"), HasSubstr("no slot of chat is free"));
  engine_->holds = false;
  read(first);
  read(second);
  EXPECT_EQ(at(answer(hi()), {"choices", "finish_reason"}).dump(), "\"stop\"") << "whoever is answered may ask again";
}

TEST_F(ChatJobTest, OtherModelsAreNotFound) {
  start();
  for (const char* model : {"talks", "gpt-4o-mini", "gpt-4o-2024-08-06", ""})
    EXPECT_EQ(at(answer(hi(fmt::format(R"(,"model":"{}")", model))), {"model"}).dump(), "\"talks\"") << model;
  const HttpReply refused = post(hi(R"(,"model":"other")"));
  EXPECT_EQ(refused.status, 404);
  EXPECT_THAT(refused.body, HasSubstr("GET /v1/models lists all"));
}

TEST_F(ChatJobTest, NoModelIsNotFound) {
  settings_.chat_model = "";
  settings_.recognition_model = "hears";
  service_.emplace(settings_, *ApiKeys::load({}), nullptr);
  EXPECT_EQ(post(hi()).error->code, "loading");
  service_->ready(nullptr);
  EXPECT_THAT(post(hi()).body, HasSubstr("no model of this server answers conversations"));
  EXPECT_EQ(head_.status, 200);
  service_->drain();
  EXPECT_EQ(post(hi()).error->code, "draining");
}

TEST_F(ChatJobTest, LongConversationIsRefused) {
  engine_->most_tokens = 8;
  start();
  std::string words;
  for (int i = 0; i < 20; ++i) words += "word ";
  const Json json = answer(R"({"messages":[{"role":"user","content":")" + words + R"("}],"stream":true})");
  EXPECT_EQ(head_.status, 400);
  EXPECT_EQ(at(json, {"error", "code"}).dump(), "\"context_length_exceeded\"");
  EXPECT_THAT(*at(json, {"error", "message"}).string(), HasSubstr("the limit is 8; leave older messages out"));
}

TEST_F(ChatJobTest, FaultEndsStreamWithErrorEvent) {
  start();
  engine_->fault = Error{Code::kInternal, "the model in /secret/place/model.gguf is gone"};
  const std::vector<std::string> data = events(hi(R"(,"stream":true)"));
  ASSERT_EQ(data.size(), 3U);
  EXPECT_THAT(data.back(), testing::StartsWith("event: error\ndata: {\"error\""));
  EXPECT_THAT(data.back(), Not(HasSubstr("secret")));
  read(post(hi()));
  EXPECT_EQ(head_.status, 500);
}

TEST_F(ChatJobTest, LackingFieldsAreNamed) {
  start();
  answer(hi(R"(,"presence_penalty":1,"tools":[{"type":"function"}])"));
  ASSERT_EQ(head_.headers.size(), 1U);
  EXPECT_EQ(head_.headers[0].name, "X-Syrinx-Ignored");
  EXPECT_EQ(head_.headers[0].value, "presence_penalty, tools");
}

TEST_F(ChatJobTest, MetricsCountTokensAndEnds) {
  start();
  EXPECT_EQ(value(R"(syrinx_answers_total{model="talks",reason="stop"})"), 0);
  answer(hi());
  answer(hi(R"(,"max_tokens":2)"));
  wait_for([&] { return value(R"(syrinx_answers_total{model="talks",reason="length"})") == 1; });
  EXPECT_EQ(value(R"(syrinx_answers_total{model="talks",reason="stop"})"), 1);
  EXPECT_EQ(value(R"(syrinx_tokens_total{model="talks",kind="prompt"})"), 6);
  EXPECT_EQ(value(R"(syrinx_tokens_total{model="talks",kind="cached"})"), 2);
  EXPECT_EQ(value(R"(syrinx_tokens_total{model="talks",kind="answer"})"), 6);
  EXPECT_EQ(value(R"(syrinx_time_to_first_token_seconds_count{model="talks"})"), 2);
  EXPECT_EQ(value(R"(syrinx_slots{model="talks",state="free"})"), 2);
}

TEST_F(ChatJobTest, LogHoldsNoText) {
  const TempFolder folder;
  const std::string log = logged(folder.path() + "/log", [&](RequestLog& to) {
    start(&to);
    answer(hi(R"(,"logprobs":true)"));
    service_.reset();
  });
  EXPECT_THAT(log, HasSubstr(R"("event":"chat","id":"7","model":"talks","stopped":"stop","prompt_tokens":3)"));
  EXPECT_THAT(log, HasSubstr(R"("answer_tokens":4)"));
  EXPECT_THAT(log, HasSubstr(R"("ignored":["logprobs"])"));
  EXPECT_THAT(log, Not(HasSubstr("Hi there")));
  EXPECT_THAT(log, Not(HasSubstr("Hello")));
}

TEST_F(ChatJobTest, ModelIsListedWithItsTask) {
  start();
  const Json model = listed_model(*service_);
  EXPECT_EQ(at(model, {"task"}).dump(), "\"text-generation\"");
  EXPECT_THAT(texts_of(at(model, {"unsupported_parameters"})), testing::Contains("logit_bias"));
}

}  // namespace
}  // namespace syrinx::server
