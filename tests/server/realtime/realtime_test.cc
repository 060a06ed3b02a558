// Realtime sessions without a socket: events in, events out.
#include "engine/families/pocket_tts/pocket_family.h"
#include "server/realtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <thread>

#include "base/log.h"
#include "server/http/base64.h"
#include "tests/base/temp_folder.h"
#include "tests/server/host/acting_engine.h"

namespace syrinx::server::realtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string text_in(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* key : path) {
    at = at->array() != nullptr && !at->array()->empty() ? at->array()->front().find(key) : at->find(key);
    if (at == nullptr) return "(nothing)";
  }
  return at->string() != nullptr ? *at->string() : at->dump();
}

// A session on a thread of its own, as a slot runs it.
class RealtimeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.path() + "/voices");
    std::ofstream(folder_.path() + "/voices/ann.safetensors") << "x";
    SpeechFiles files;
    files.family = &pocket_tts_family();
    files.voices = folder_.path();
    const auto made = SpeechModel::of({}, files, engine_);
    ASSERT_TRUE(made) << made.error().message;
    model_ = *made;
  }
  void TearDown() override { leave(); }

  void start(SessionOrder order = {}) {
    order.speech = model_;
    if (!order.replies) order.replies = std::make_shared<ReadAloud>();
    order.id = "1";
    session_.emplace(std::move(order), JobReports{.metrics = metrics_}, clock_);
    thread_ = std::thread([this] {
      session_->run();
      session_->end();
    });
    EXPECT_EQ(hear(), "session.created");
  }
  void leave() {
    if (!thread_.joinable()) return;
    session_->messages()->leave();
    thread_.join();
  }
  void say(const std::string& text) { session_->messages()->deliver({.bytes = text}); }
  // The next event's type; the event is last_.
  std::string hear() {
    MessageStream::Message message;
    bool has_ended = session_->messages()->ended().has_value();  // before the messages in front of it
    for (; !session_->messages()->try_pop(message); has_ended = session_->messages()->ended().has_value()) {
      if (has_ended) return "(the end)";
      std::this_thread::yield();
    }
    last_ = *parse_json(message.bytes, "the event");
    return text_in(last_, {"type"});
  }
  std::vector<std::string> hear_until(const std::string& type) {
    std::vector<std::string> types = {hear()};
    while (types.back() != type && types.back() != "(the end)") types.push_back(hear());
    return types;
  }
  std::string error(const char* key) const { return text_in(last_, {"error", key}); }

  const TempFolder folder_;
  const std::shared_ptr<ActingEngine> engine_ = std::make_shared<ActingEngine>();
  std::shared_ptr<const SpeechModel> model_;
  Metrics metrics_;
  ManualClock clock_;
  std::optional<Session> session_;
  std::thread thread_;
  Json last_;
};

constexpr const char* kSpeak =
    R"({"type":"response.create","response":{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello there, you."}]}]}})";

TEST_F(RealtimeTest, AResponseIsToldFromItsBeginningToItsEnd) {
  engine_->act.chunks = 2;
  start();
  say(kSpeak);
  EXPECT_THAT(hear_until("response.done"),
              ElementsAre("response.created", "response.output_item.added", "conversation.item.added",
                          "response.content_part.added", "response.output_audio_transcript.delta",
                          "response.output_audio.delta", "response.output_audio.delta", "response.output_audio.done",
                          "response.output_audio_transcript.done", "response.content_part.done",
                          "response.output_item.done", "conversation.item.done", "response.done"));
  EXPECT_EQ(text_in(last_, {"response", "status"}), "completed");
  EXPECT_EQ(text_in(last_, {"response", "output", "status"}), "completed");
  EXPECT_EQ(text_in(last_, {"response", "usage", "output_tokens"}), "2");
  leave();
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_generation_stopped_total{reason=\"eos\"} 1"));
}

TEST_F(RealtimeTest, AChunkOfSecondsLeavesInPartsAndWaitsForRoom) {
  engine_->act.chunk_samples = 24000 * 20;
  start();
  say(kSpeak);
  size_t bytes = 0, events = 0;
  while (session_->messages()->has_room_for_groups(EventSender::kAtOnce)) std::this_thread::yield();
  for (std::string type = hear(); type != "response.done"; type = hear()) {
    if (type != "response.output_audio.delta") continue;
    bytes += text_in(last_, {"delta"}).size() / 4 * 3;
    ++events;
  }
  EXPECT_EQ(bytes, 24000U * 20 * 2);
  EXPECT_EQ(events, 100U);
}

TEST_F(RealtimeTest, CancelledResponseKeepsHeardText) {
  engine_->act.chunks = 100000;
  start({.dialect = Dialect::kBeta});
  say(kSpeak);
  hear_until("response.audio.delta");
  say(R"({"type":"response.cancel"})");
  hear_until("response.done");
  EXPECT_EQ(text_in(last_, {"response", "status_details", "reason"}), "client_cancelled");
  const std::string id = text_in(last_, {"response", "output", "id"});
  say(R"({"type":"conversation.item.truncate","item_id":")" + id + R"(","content_index":0,"audio_end_ms":80})");
  EXPECT_EQ(hear(), "conversation.item.truncated");
  say(R"({"type":"conversation.item.retrieve","item_id":")" + id + R"("})");
  EXPECT_EQ(hear(), "conversation.item.retrieved");
  EXPECT_LT(text_in(last_, {"item", "content", "transcript"}).size(), std::string("Hello there, you.").size());
}

// OpenAI's agents say so before they cancel.
TEST_F(RealtimeTest, AnItemIsCutThoughItIsStillBeingSpoken) {
  engine_->act.chunks = 100000;
  start();
  say(kSpeak);
  hear_until("response.output_item.added");
  const std::string id = text_in(last_, {"item", "id"});
  hear_until("response.output_audio.delta");
  const auto truncate = [&](const std::string& ms) {
    say(R"({"type":"conversation.item.truncate","item_id":")" + id + R"(","content_index":0,"audio_end_ms":)" + ms +
        "}");
  };
  truncate("1000000000");
  hear_until("error");
  EXPECT_EQ(error("param"), "audio_end_ms");
  truncate("1");
  hear_until("conversation.item.truncated");
  EXPECT_EQ(text_in(last_, {"audio_end_ms"}), "1");
  truncate("2");  // not more again
  EXPECT_THAT(hear_until("conversation.item.truncated"), testing::Not(testing::Contains("response.done")));
  say(R"({"type":"response.cancel"})");
  hear_until("response.done");
  EXPECT_EQ(text_in(last_, {"response", "status_details", "reason"}), "client_cancelled");
  say(R"({"type":"conversation.item.retrieve","item_id":")" + id + R"("})");
  EXPECT_EQ(hear(), "conversation.item.retrieved");
  EXPECT_EQ(text_in(last_, {"item", "content", "transcript"}), "");
  truncate("2");
  hear_until("error");
  EXPECT_EQ(error("param"), "audio_end_ms");
}

TEST_F(RealtimeTest, SoundThatWaitsForItsReaderIsTakenBackWithItsResponse) {
  engine_->act.chunks = 100000;
  start();
  say(kSpeak);
  MessageStream& messages = *session_->messages();
  while (messages.has_room_for_groups(EventSender::kAtOnce)) std::this_thread::yield();
  say(R"({"type":"response.cancel"})");  // which is heard though nothing has been read
  const auto is_cancelled = [&] { return metrics_.text().find("reason=\"cancelled\"} 1") != std::string::npos; };
  while (!is_cancelled()) std::this_thread::yield();
  EXPECT_THAT(hear_until("response.done"), testing::Not(testing::Contains("response.output_audio.delta")));
  EXPECT_EQ(text_in(last_, {"response", "status"}), "cancelled");
  say(kSpeak);
  EXPECT_THAT(hear_until("response.output_audio.delta"), testing::Contains("response.created"));
}

TEST_F(RealtimeTest, ASlotIsTakenForAResponseAlone) {
  SlotPool slots(1, clock_);
  engine_->act.chunks = 100000;
  start({.take_slot = [&]() -> tl::expected<SlotPool::Lease, HttpError> {
    if (auto slot = slots.try_take()) return std::move(*slot);
    return tl::unexpected(HttpError{.status = 503, .message = "all are busy", .code = "no_free_slot"});
  }});
  EXPECT_EQ(slots.busy(), 0U);
  say(kSpeak);
  hear_until("response.output_audio.delta");
  EXPECT_EQ(slots.busy(), 1U);
  say(R"({"type":"response.cancel"})");
  hear_until("response.done");
  while (slots.busy() > 0) std::this_thread::yield();
  auto other = slots.try_take();
  say(kSpeak);
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(error("code"), "no_free_slot");
  other.reset();
  say(kSpeak);
  EXPECT_EQ(hear(), "response.created");
  leave();
  EXPECT_EQ(slots.busy(), 0U);
}

TEST_F(RealtimeTest, PathsInEngineErrorsStayPrivate) {
  engine_->act = {.chunks = 1, .end = [] { return Status(fail(Code::kIo, "cannot read /secret/place")); }};
  start();
  say(kSpeak);
  hear_until("response.done");
  EXPECT_EQ(text_in(last_, {"response", "status"}), "failed");
  EXPECT_THAT(last_.dump(), testing::Not(HasSubstr("secret")));
}

TEST_F(RealtimeTest, ATextThatIsRefusedForItsLengthIsNotKept) {
  start({.max_text_characters = 10});
  say(R"({"type":"response.create","response":{"output_modalities":["text"],"input":[)"
      R"({"type":"message","role":"user","content":[{"type":"input_text","text":"Hello"}]},)"
      R"({"type":"message","role":"user","content":[{"type":"input_text","text":"there, you"}]}]}})");
  hear_until("response.done");
  EXPECT_EQ(text_in(last_, {"response", "status"}), "failed");
  EXPECT_EQ(text_in(last_, {"response", "status_details", "error", "type"}), "invalid_request_error");
  EXPECT_EQ(text_in(last_, {"response", "status_details", "error", "code"}), "null");
  EXPECT_THAT(last_.dump(), testing::Not(HasSubstr("there, you")));
}

std::string item_event(const std::string& id, const std::string& text, const std::string& role = "user",
                       const std::string& more = "") {
  return R"({"type":"conversation.item.create","item":{"type":"message","id":")" + id + R"(","role":")" + role +
         R"(","content":[{"type":")" + (role == "user" ? "input" : "output") + R"(_text","text":")" + text + "\"}]}" +
         more + "}";
}

TEST_F(RealtimeTest, AClientThatReadsNothingHasFewBytesWaiting) {
  constexpr size_t kCharacters = MessageStream::kWaitingBytes / 2;
  start({.max_text_characters = kCharacters});
  say(item_event("a", std::string(kCharacters, 'x')));
  hear_until("conversation.item.done");
  for (int i = 0; i < 10; ++i) say(R"({"type":"conversation.item.retrieve","item_id":"a"})");
  constexpr size_t kRoom = MessageStream::kMessages - 2;
  while (session_->messages()->has_room(EventSender::kAtOnce) || session_->messages()->room() > kRoom)
    std::this_thread::yield();
  EXPECT_EQ(session_->messages()->room(), kRoom);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(hear(), "conversation.item.retrieved");
}

TEST_F(RealtimeTest, UnansweredItemsAreAnsweredLater) {
  start({.max_text_characters = 6});
  constexpr const char* kCreate = R"({"type":"response.create","response":{"output_modalities":["text"]}})";
  say(item_event("a", "One."));
  say(item_event("b", "Two."));
  hear_until("conversation.item.done");
  hear_until("conversation.item.done");
  say(kCreate);
  hear_until("response.done");
  EXPECT_EQ(text_in(last_, {"response", "status"}), "failed");
  say(R"({"type":"conversation.item.delete","item_id":"a"})");
  EXPECT_EQ(hear(), "conversation.item.deleted");
  for (const char* create :
       {R"({"type":"response.create","response":{"output_modalities":["text"],"conversation":"none"}})", kCreate}) {
    say(create);
    hear_until("response.output_text.done");
    EXPECT_EQ(text_in(last_, {"text"}), "Two.");
    hear_until("response.done");
  }
  say(kCreate);
  EXPECT_EQ(hear(), "error");
  EXPECT_THAT(error("message"), HasSubstr("no text"));
}

TEST_F(RealtimeTest, AHistoryThatIsPutBackIsNotSpoken) {
  start();
  say(item_event("a", "How are you?"));
  say(item_event("b", "Fine.", "assistant"));
  say(item_event("c", "And now?"));
  for (int i = 0; i < 3; ++i) hear_until("conversation.item.done");
  say(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
  hear_until("response.output_text.done");
  EXPECT_EQ(text_in(last_, {"text"}), "And now?");
}

TEST_F(RealtimeTest, ItemsThatMakeRoomAreTold) {
  start();
  for (size_t i = 0; i < Conversation::kMaxItems; ++i) {
    say(item_event("item_" + std::to_string(i), "x"));
    hear_until("conversation.item.done");
  }
  say(item_event("first", "x", "user", R"(,"previous_item_id":"root")"));
  EXPECT_EQ(hear(), "conversation.item.added");
  EXPECT_EQ(text_in(last_, {"previous_item_id"}), "null");
  EXPECT_EQ(hear(), "conversation.item.done");
  EXPECT_EQ(hear(), "conversation.item.deleted");
  EXPECT_EQ(text_in(last_, {"item_id"}), "item_0");
}

TEST_F(RealtimeTest, SoundOfAResponseThatItsClientLeavesIsCounted) {
  engine_->act.chunks = 100000;
  start();
  say(kSpeak);
  hear_until("response.output_audio.delta");
  leave();
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_generation_stopped_total{reason=\"cancelled\"} 1"));
  EXPECT_THAT(metrics_.text(), testing::ContainsRegex("syrinx_audio_seconds_total[{][^}]*[}] (0[.]0*)?[1-9]"));
}

// Breaks off as a library may.
class ThrowingReplies final : public ReplySource {
 public:
  Result<std::unique_ptr<Reply>> start(Prompt /*prompt*/, std::function<void()> /*wake*/) override {
    class ThrowingReply final : public Reply {
      Result<bool> take(std::string& /*text*/) override { throw std::runtime_error("no memory"); }
    };
    return std::make_unique<ThrowingReply>();
  }
};

TEST_F(RealtimeTest, AnExceptionEndsTheSessionAndItsSpeech) {
  engine_->act.chunks = 100000;
  std::string logged;
  set_log_sink([&](LogLevel, std::string_view line) { logged = line; });
  start({.replies = std::make_shared<ThrowingReplies>()});
  say(kSpeak);
  hear_until("(the end)");
  EXPECT_EQ(session_->messages()->ended()->code, 1011);
  leave();
  set_log_sink({});
  EXPECT_THAT(logged, HasSubstr("no memory"));
  EXPECT_THAT(metrics_.text(), HasSubstr("syrinx_generation_stopped_total{reason=\"error\"} 1"));
}

TEST_F(RealtimeTest, ASessionEndsInItsTime) {
  start({.max_session_s = 100, .idle_s = 10});
  clock_.advance_ns(int64_t{11} * 1'000'000'000);
  session_->messages()->poke();
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(error("code"), "session_expired");
  EXPECT_EQ(hear(), "(the end)");
  EXPECT_EQ(session_->messages()->ended()->code, 1008);
}

class BusySession : public RealtimeTest {
 protected:
  // Ends a session of 100 s, of which more are over than that: at most one event more is heeded.
  void ends_in_its_time() {
    say(R"({"type":"session.update","session":{}})");
    say(R"({"type":"conversation.item.retrieve","item_id":"none"})");
    hear_until("error");
    ASSERT_EQ(error("message"), "a session takes at most 100 s; connect again");
    EXPECT_EQ(error("code"), "session_expired");
    EXPECT_EQ(error("type"), "invalid_request_error");
    hear_until("(the end)");
    EXPECT_EQ(session_->messages()->ended()->code, 1008);
    EXPECT_EQ(session_->messages()->ended()->reason, "a session takes at most 100 s");
  }
};

TEST_F(BusySession, EndsInItsTimeThoughEventsCome) {
  start({.max_session_s = 100, .idle_s = 10});
  for (int i = 0; i < 11; ++i) {
    clock_.advance_ns(int64_t{9} * 1'000'000'000);
    say(R"({"type":"session.update","session":{}})");
    ASSERT_EQ(hear(), "session.updated") << last_.dump();
  }
  clock_.advance_ns(int64_t{2} * 1'000'000'000);
  ends_in_its_time();
}

// A response is no idleness.
TEST_F(BusySession, EndsInItsTimeThoughItSpeaks) {
  engine_->act.chunks = SIZE_MAX;
  start({.max_session_s = 100, .idle_s = 10});
  say(kSpeak);
  hear_until("response.output_audio.delta");
  clock_.advance_ns(int64_t{99} * 1'000'000'000);
  for (int round = 0; round < 2; ++round) {  // the second is taken at 99 s
    say(R"({"type":"conversation.item.retrieve","item_id":"none"})");
    hear_until("error");
    ASSERT_EQ(error("code"), "item_retrieve_invalid_item_id");
  }
  clock_.advance_ns(int64_t{2} * 1'000'000'000);
  ends_in_its_time();
}

TEST_F(RealtimeTest, RefusedEventsAreNoActivity) {
  start({.idle_s = 10});
  clock_.advance_ns(int64_t{6} * 1'000'000'000);
  say("{");
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(error("code"), "invalid_json");
  clock_.advance_ns(int64_t{6} * 1'000'000'000);
  session_->messages()->poke();
  EXPECT_EQ(hear(), "error");
  EXPECT_EQ(error("code"), "session_expired");
}

TEST_F(RealtimeTest, AnEventThatIsWrongChangesNothing) {
  start({.strict = true, .max_text_characters = 20});
  const auto refused = [&](const std::string& text, const char* param, const char* sentence) {
    say(text);
    EXPECT_EQ(hear(), "error") << text;
    EXPECT_EQ(error("param"), param) << text;
    EXPECT_THAT(error("message"), HasSubstr(sentence)) << text;
  };
  refused(R"({"type":"session.update","session":{"instructions":"x","voice":"nobody"}})", "voice", "nobody");
  refused(R"({"type":"session.update","session":{"type":"dictation"}})", "session.type", "realtime");
  refused(R"({"type":"session.update","session":{"output_modalities":["smell"]}})", "output_modalities", "audio");
  refused(R"({"type":"session.update","session":{"audio":{"output":{"format":{"type":"audio/pcm","rate":8000}}}}})",
          "audio.output.format", "24000");
  for (const char* const field : {"speed", "audio.output.speed"}) {
    const char* const session =
        field == std::string("speed") ? R"({"speed":1.5})" : R"({"audio":{"output":{"speed":1.5}}})";
    refused(R"({"type":"session.update","session":)" + std::string(session) + "}", field, "must be 1");
    refused(R"({"type":"response.create","response":)" + std::string(session) + "}", field, "must be 1");
  }
  refused(R"({"type":"response.create"})", "response", "no text");
  refused(R"({"type":"response.create","response":{"metadata":{"a":1}}})", "response.metadata", "16");
  refused(R"({"type":"response.create","response":{"conversation":"new"}})", "response.conversation", "none");
  refused(R"({"type":"conversation.item.create","item":{"type":"function_call"}})", "item.type", "message");
  refused(R"({"type":"conversation.item.delete","item_id":"x"})", "item_id", "no item");
  refused(R"({"type":"conversation.item.truncate"})", "item_id", "missing");
  say(R"({"type":"session.update","session":{}})");
  EXPECT_EQ(hear(), "session.updated");
  EXPECT_EQ(text_in(last_, {"session", "instructions"}), "");
}

TEST_F(RealtimeTest, ResponseNamesIgnoredFields) {
  start();
  say(R"({"type":"response.create","response":{"speed":1.5,"input":[{"type":"message","role":"user","content":)"
      R"([{"type":"input_text","text":"Hello."}]}]}})");
  EXPECT_EQ(hear(), "response.created") << last_.dump();
  EXPECT_EQ(text_in(last_, {"response", "ignored"}), R"(["speed"])");
}

TEST(ConversationTest, TheOldestMakeRoomAndPlacesAreKept) {
  Conversation conversation;
  for (size_t i = 0; i < Conversation::kMaxItems + 10; ++i)
    EXPECT_TRUE(conversation.add({.id = "item_" + std::to_string(i)}));
  EXPECT_EQ(conversation.items().size(), Conversation::kMaxItems);
  EXPECT_EQ(conversation.find("item_9"), nullptr);
  ASSERT_TRUE(conversation.erase("item_20"));
  EXPECT_TRUE(conversation.add({.id = "b"}, "item_19"));
  EXPECT_EQ(conversation.id_before("b"), "item_19");
  EXPECT_EQ(conversation.id_before("item_21"), "b");
  EXPECT_FALSE(conversation.add({.id = "c"}, "nobody"));
  EXPECT_TRUE(conversation.add({.id = "d"}));
  std::vector<std::string> dropped;
  EXPECT_TRUE(conversation.add({.id = "e"}, Conversation::kRoot, &dropped));
  EXPECT_EQ(conversation.items().front().id, "e");
  EXPECT_EQ(conversation.items().size(), Conversation::kMaxItems);
  EXPECT_THAT(dropped, ElementsAre("item_11"));
}

TEST(ConversationTest, LongTextsMakeRoomTooAndTheNewestStays) {
  Conversation conversation;
  const std::string half(Conversation::kMaxTextBytes / 2, 'x');
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(conversation.add({.id = id, .text = half}));
  EXPECT_EQ(conversation.items().size(), 2U);
  EXPECT_EQ(conversation.find("a"), nullptr);
  EXPECT_TRUE(conversation.add({.id = "d", .text = half + half + half}));
  ASSERT_EQ(conversation.items().size(), 1U);
  EXPECT_EQ(conversation.items().front().id, "d");
  // A spoken item gets its text long after it was added.
  std::vector<std::string> dropped;
  for (const char* id : {"e", "f"}) EXPECT_TRUE(conversation.add({.id = id}, {}, &dropped));
  for (const char* id : {"e", "f", "nobody"}) conversation.set_text(id, half + "x", &dropped);
  EXPECT_THAT(dropped, ElementsAre("d", "e"));
  EXPECT_EQ(conversation.items().front().text.size(), half.size() + 1);
}

TEST(ConversationTest, HeardTextEndsWithAWord) {
  Item item{.text = "One two three.", .audio_ms = 1000};
  EXPECT_EQ(heard_text(item, 0), "");
  EXPECT_EQ(heard_text(item, 600), "One two");
  EXPECT_EQ(heard_text(item, 1000), "One two three.");
  item.words = {{.text = "One", .source_begin = 0, .source_end = 3, .start_s = 0, .end_s = 0.7},
                {.text = "two", .source_begin = 4, .source_end = 7, .start_s = 0.7, .end_s = 0.9}};
  EXPECT_EQ(heard_text(item, 600), "");
  EXPECT_EQ(heard_text(item, 700), "One");
}

}  // namespace
}  // namespace syrinx::server::realtime
