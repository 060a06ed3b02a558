// Wyoming without sockets: its events on the wire, and what a session makes of those that it should not be sent.
// tests/e2e/wyoming_test.py has the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/host/arriving_text.h"
#include "server/service.h"
#include "server/wyoming/event.h"
#include "server/wyoming/session.h"
#include "server/wyoming/speech_answer.h"

namespace syrinx::server::wyoming {
namespace {

using testing::HasSubstr;

Error refused(std::string_view bytes, const EventLimits& limits = {}) {
  EventReader reader(limits);
  reader.push(bytes);
  const auto event = reader.next();
  EXPECT_FALSE(event) << bytes;
  return event ? Error() : event.error();
}

TEST(WyomingEvent, PartsOfAnySizeGiveTheSameEvents) {
  Event event{.type = "audio-chunk", .payload = std::string("\0\n{}", 4)};
  event.data.set("rate", 16000);
  event.data.set("text", "a\nb");
  const std::string bytes = written(event) + "{\"type\":\"describe\"}\r\n" + written(event);
  for (size_t step = 1; step <= bytes.size(); ++step) {
    EventReader reader({});
    std::vector<Event> events;
    for (size_t at = 0; at < bytes.size(); at += step) {
      reader.push(std::string_view(bytes).substr(at, step));
      for (;;) {
        auto next = reader.next();
        ASSERT_TRUE(next) << next.error().message;
        if (!*next) break;
        events.push_back(std::move(**next));
      }
    }
    ASSERT_EQ(events.size(), 3U);
    EXPECT_EQ(events[1].type, "describe");
    EXPECT_TRUE(events[1].data.object()->empty());
    EXPECT_EQ(events[2].payload, event.payload);
    EXPECT_EQ(*events[2].whole("rate"), 16000);
    EXPECT_EQ(*events[2].text("text"), "a\nb");
    EXPECT_EQ(events[2].text("rate"), nullptr);
    EXPECT_EQ(reader.waiting_bytes(), 0U);
  }
}

TEST(WyomingEvent, DataBehindTheLineGoesOverThatOfTheLine) {
  EventReader reader({});
  reader.push("{\"type\": \"x\", \"data\": {\"a\": 1, \"b\": 2}, \"data_length\": 16}\n{\"b\":3, \"c\": 4} ");
  const auto event = reader.next();
  ASSERT_TRUE(event && *event);
  EXPECT_EQ((*event)->data.dump(), R"({"a":1,"b":3,"c":4})");
}

TEST(WyomingEvent, TooLargeEventsAreRefusedEarly) {
  const EventLimits limits{.max_json_bytes = 100, .max_payload_bytes = 50};
  EXPECT_EQ(refused(std::string(101, ' '), limits).code, Code::kLimitExceeded);
  EXPECT_THAT(refused("{\"type\": \"x\", \"data_length\": 101}\n", limits).message, HasSubstr("at most 100 bytes"));
  EXPECT_THAT(refused("{\"type\": \"x\", \"payload_length\": 51}\n", limits).message, HasSubstr("at most 50 bytes"));
  std::string fields;
  for (int i = 0; i < 65; ++i) fields += fmt::format("{}\"f{}\": 0", i == 0 ? "" : ", ", i);
  EXPECT_THAT(refused("{\"type\": \"x\", \"data\": {" + fields + "}}\n").message, HasSubstr("at most 64 fields"));
  EXPECT_THAT(refused("{" + fields + "}\n").message, HasSubstr("give at most 64"));
  EXPECT_EQ(refused("{\"type\": \"x\", \"data\": {\"a\":" + std::string(9, '[') + "}}\n").code, Code::kLimitExceeded);
  std::string list = "1";
  for (int i = 0; i < 1024; ++i) list += ",1";
  EXPECT_THAT(refused("{\"type\": \"x\", \"data\": {\"a\": [" + list + "]}}\n").message, HasSubstr("1024 values"));
  EXPECT_THAT(refused(std::string(4097, '\t') + "x\n").message, HasSubstr("blanks of more than 4096 bytes"));
  EXPECT_THAT(refused("{\"type\": \"" + std::string(65, 'x') + "\"}\n").message, HasSubstr("at most 64 bytes"));
}

TEST(WyomingEvent, InvalidEventsAreRefused) {
  for (const char* line : {"\n", "[]\n", "{}\n", "{\"type\": null}\n", "{\"type\": \"x\", \"data\": []}\n",
                           "{\"type\": \"x\", \"data_length\": -1}\n", "{\"type\": \"x\", \"data_length\": 1.5}\n",
                           "{\"type\": \"x\", \"payload_length\": \"1\"}\n",
                           "{\"type\": \"x\", \"data_length\": 2}\n[]", "{\"type\": \"\xFF\"}\n"})
    EXPECT_EQ(refused(line).code, Code::kDataLoss) << line;
}

TEST(WyomingSession, BeforeTheModelIsThereAllIsRefused) {
  Service service({}, *ApiKeys::load({}), nullptr);
  Description description;
  for (const char* type : {"describe", "synthesize", "synthesize-start", "transcribe"}) {
    Session session(service, description);
    Event event{.type = type};
    event.data.set("text", "Hello.");
    const Session::Said said = session.take(event);
    EXPECT_TRUE(said.closes);
    EXPECT_THAT(said.bytes, HasSubstr("\"code\":\"loading\""));
    EXPECT_EQ(session.reply(), nullptr);
  }
  Session session(service, description);
  EXPECT_EQ(session.take({.type = "unheard-of"}).bytes, "");
  EXPECT_THAT(session.take({.type = "ping"}).bytes, HasSubstr("\"pong\""));
  EXPECT_TRUE(session.takes_events());
}

TEST(WyomingSession, NeverAnotherVoiceThanAskedFor) {
  Service service({}, *ApiKeys::load({}), nullptr);
  service.ready(nullptr);
  Description description;
  for (const auto& [voice, words] :
       {std::pair(R"("bob")", "'voice' must be an object"), std::pair(R"({"name":7})", "'name' must be a text"),
        std::pair(R"({"language":[]})", "'language' must be a text"),
        std::pair(R"({"name":"ann","speaker":"zorro"})", "no speaker 'zorro'"),
        std::pair(R"({"language":"de"})", "no voice speaks 'de'"),
        std::pair(R"({"name":null,"speaker":""})", "no model of this server speaks")}) {
    Session session(service, description);
    Event event{.type = "synthesize"};
    event.data.set("text", "Hello.");
    event.data.set("voice", *parse_json(voice, "voice", {}));
    const Session::Said said = session.take(event);
    EXPECT_TRUE(said.closes) << voice;
    EXPECT_THAT(said.bytes, HasSubstr(words));
    EXPECT_THAT(said.bytes, testing::Not(HasSubstr("GET /")));
  }
}

TEST(WyomingDescription, IsMadeOnce) {
  Description description;
  const std::string& first = description.of({});
  EXPECT_THAT(first, HasSubstr("\"info\""));
  const char* const bytes = first.data();
  EXPECT_EQ(description.of({}).data(), bytes);
}

// The types of the events in each block, which holds whole ones; adds the bytes of their payloads.
std::vector<std::string> types_in_blocks(ReplyStream& reply, size_t& bytes) {
  std::vector<std::string> types;
  for (ReplyStream::Block block; reply.try_pop(block);) {
    EventReader reader({});
    reader.push({reinterpret_cast<const char*>(block.data()), block.size()});
    std::string in_block;
    for (auto event = reader.next(); event && *event; event = reader.next()) {
      in_block += (in_block.empty() ? "" : " ") + (*event)->type;
      bytes += (*event)->payload.size();
    }
    EXPECT_EQ(reader.waiting_bytes(), 0U);
    types.push_back(in_block);
  }
  return types;
}

TEST(WyomingSpeechAnswer, EachEventIsOneBlockButForTheLast) {
  EventAnswer answer(std::make_shared<ArrivingText>(10));
  const std::vector<std::byte> sound(10000, std::byte{7});
  ASSERT_TRUE(answer.begin());
  ASSERT_TRUE(answer.sink().append(sound));
  ASSERT_TRUE(answer.finish({}));
  size_t bytes = 0;
  EXPECT_THAT(types_in_blocks(*answer.reply(), bytes),
              testing::ElementsAre("audio-start", "audio-chunk", "audio-chunk", "audio-chunk"));
  EXPECT_EQ(bytes, sound.size());
  answer.end(/*complete=*/true);  // who hears the last events finds that this is the end
  EXPECT_EQ(answer.reply()->pop_news().end, ReplyStream::End::kFinished);
  EXPECT_THAT(types_in_blocks(*answer.reply(), bytes), testing::ElementsAre("audio-stop synthesize-stopped"));
  EXPECT_EQ(answer.reply()->pop_news().head->status, 200);
}

// The accepted text is spoken; the error stands behind it, instead of the end.
TEST(WyomingSpeechAnswer, ATextThatWasTooLongEndsWithTheError) {
  const auto text = std::make_shared<ArrivingText>(3);
  EventAnswer answer(text);
  ASSERT_TRUE(answer.begin());
  ASSERT_FALSE(text->append("four"));
  ASSERT_TRUE(answer.finish({}));
  answer.end(/*complete=*/true);
  EXPECT_EQ(answer.reply()->pop_news().end, ReplyStream::End::kAborted);
  std::string last;
  for (ReplyStream::Block block; answer.reply()->try_pop(block);)
    last.assign(reinterpret_cast<const char*>(block.data()), block.size());
  EXPECT_THAT(last, HasSubstr("more than 3 characters"));
}

TEST(WyomingSpeechAnswer, AnErrorEndsTheReplyAsBrokenOff) {
  EventAnswer answer(nullptr);
  EXPECT_TRUE(answer.fail({.status = 400, .message = std::string(5000, 'x')}));
  answer.end(/*complete=*/true);
  const ReplyStream::News news = answer.reply()->pop_news();
  EXPECT_EQ(news.end, ReplyStream::End::kAborted);
  EXPECT_EQ(news.head->status, 400);
  ReplyStream::Block block;
  ASSERT_TRUE(answer.reply()->try_pop(block));
  EXPECT_LT(block.size(), 2200U);
  EXPECT_FALSE(answer.reply()->try_pop(block));
}

}  // namespace
}  // namespace syrinx::server::wyoming
