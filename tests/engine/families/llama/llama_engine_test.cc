#include "engine/families/llama/llama_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "engine/families/families.h"
#include "engine/families/find_chat_files.h"

namespace syrinx {
namespace {

const std::string kFolder = std::string(SYRINX_TEST_DATA) + "/llama/";
constexpr size_t kAnswer = 40;  // tokens of those that are expected

std::shared_ptr<ChatEngine> loaded(const std::string& name, Precision precision = Precision::kF32,
                                   size_t conversations = 3, size_t context = 0, int threads = 2,
                                   std::shared_ptr<Compute> compute = {}) {
  auto files = find_chat_files(kFolder + name, "");
  EXPECT_TRUE(files.has_value()) << files.error().message;
  auto engine = load_chat_engine({.files = *files,
                                  .precision = precision,
                                  .threads = threads,
                                  .context = context,
                                  .conversations = conversations,
                                  .compute = std::move(compute)});
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  return *engine;
}

// tools/checkpoints/llama.py: transformers' greedy answers.
struct Expected {
  std::vector<text::ChatMessage> messages;
  size_t prompt_tokens = 0;
  std::string text;
};

std::vector<Expected> expected(const std::string& name) {
  std::ifstream file(kFolder + name + "/expected.json");
  std::stringstream text;
  text << file.rdbuf();
  const auto parsed = parse_json(text.str(), "expected.json");
  EXPECT_TRUE(parsed.has_value());
  std::vector<Expected> all;
  for (const Json& row : *parsed->array()) {
    Expected& one = all.emplace_back();
    for (const Json& message : *row.find("messages")->array())
      one.messages.push_back(
          {*text::parse_chat_role(*message.find("role")->string()), *message.find("content")->string()});
    one.prompt_tokens = row.find("ids")->array()->size();
    one.text = *row.find("text")->string();
  }
  EXPECT_EQ(all.size(), 3u);
  return all;
}

ChatRequest greedy(const std::vector<text::ChatMessage>& messages, size_t tokens = kAnswer) {
  return {.messages = messages,
          .sampling = {.temperature = 0.0f, .top_k = 0, .repetition_penalty = 1.0f},
          .max_tokens = tokens};
}

struct Answered {
  std::string text;
  ChatEnd end = ChatEnd::kOpen;
  ChatUsage usage = {};
};

Answered answer(ChatEngine& engine, ChatRequest request) {
  auto started = engine.start(std::move(request));
  EXPECT_TRUE(started.has_value()) << started.error().message;
  if (!started) return {};
  Answered got;
  for (bool more = true; more;) {
    const auto next = (*started)->next(got.text);
    EXPECT_TRUE(next.has_value()) << next.error().message;
    more = next.value_or(false);
  }
  got.end = (*started)->end();
  got.usage = (*started)->usage();
  return got;
}

TEST(LlamaEngine, AnswersAsTransformers) {
  for (const char* const name : {"chat_smollm", "chat_qwen2"}) {
    SCOPED_TRACE(name);
    const auto engine = loaded(name);
    for (const Expected& want : expected(name)) {
      const Answered got = answer(*engine, greedy(want.messages));
      EXPECT_EQ(got.text, want.text);
      EXPECT_EQ(got.end, ChatEnd::kMaxTokens);
      EXPECT_EQ(got.usage.prompt_tokens, want.prompt_tokens);
      EXPECT_EQ(got.usage.answer_tokens, kAnswer);
    }
  }
}

TEST(LlamaEngine, ConversationsAtOnceAnswerAsAlone) {
  const std::vector<Expected> want = expected("chat_smollm");
  const auto compute = std::make_shared<Compute>();
  const auto engine = loaded("chat_smollm", Precision::kF32, 3, 0, 2, compute);
  std::optional<Scheduler::Open> stream;
  for (int round = 0; round < 6; ++round) {
    if (round == 3) stream.emplace(compute->scheduler());  // passes give way between layers
    std::vector<std::thread> askers;
    std::vector<std::string> got(want.size());
    for (size_t n = 0; n < want.size(); ++n)
      askers.emplace_back([&, n] {
        ChatRequest request = greedy(want[n].messages);
        request.is_batch = round % 2 == 1 && n > 0;
        got[n] = answer(*engine, std::move(request)).text;
      });
    for (std::thread& asker : askers) asker.join();
    for (size_t n = 0; n < want.size(); ++n) EXPECT_EQ(got[n], want[n].text) << round;
  }
  EXPECT_EQ(engine->waiting(), 0u);
  EXPECT_GT(engine->steps().count(), 0u);
}

TEST(LlamaEngine, TalkReadsOnlyTheNewTurn) {
  const auto engine = loaded("chat_smollm");
  std::vector<text::ChatMessage> talk = {{text::ChatRole::kUser, "Hello."}};
  const Answered first = answer(*engine, greedy(talk, 8));
  EXPECT_EQ(first.usage.cached_tokens, 0u);
  EXPECT_EQ(answer(*engine, greedy(talk, 8)).usage.cached_tokens, first.usage.prompt_tokens - 1);
  talk.push_back({text::ChatRole::kAssistant, "Hi."});
  talk.push_back({text::ChatRole::kUser, "Again?"});
  const Answered second = answer(*engine, greedy(talk, 8));
  EXPECT_GE(second.usage.cached_tokens, first.usage.prompt_tokens - 4);
  EXPECT_EQ(answer(*loaded("chat_smollm"), greedy(talk, 8)).text, second.text);
}

TEST(LlamaEngine, SystemMessageIsSharedByConversations) {
  const std::string rules = "You answer in one short sentence, and never tell a lie about anything at all.";
  const auto asking = [&](const char* question) {
    return greedy({{text::ChatRole::kSystem, rules}, {text::ChatRole::kUser, question}}, 8);
  };
  const auto engine = loaded("chat_qwen2");
  auto first = engine->start(asking("Why?"));
  ASSERT_TRUE(first.has_value());
  std::string text;
  ASSERT_TRUE((*first)->next(text).has_value());
  EXPECT_EQ((*first)->usage().cached_tokens, 0u);
  const Answered second = answer(*engine, asking("Where?"));  // in another slot
  EXPECT_GE(second.usage.cached_tokens, llama::PromptCache::kLeastOpening);
  EXPECT_EQ(second.text, answer(*loaded("chat_qwen2"), asking("Where?")).text);
}

TEST(LlamaEngine, TalksInTurnsKeepTheirSlots) {
  const auto engine = loaded("chat_smollm", Precision::kF32, 2);
  std::vector<std::vector<text::ChatMessage>> talks;
  for (const char* const first : {"Tell me of the sea, please, and of ships.", "How do I bake bread without an oven?"})
    talks.push_back({{text::ChatRole::kSystem, "You answer in one short sentence, and never tell a lie."},
                     {text::ChatRole::kUser, first}});
  for (int turn = 0; turn < 3; ++turn) {
    for (auto& talk : talks) {
      const Answered got = answer(*engine, greedy(talk, 4));
      const size_t before = got.usage.prompt_tokens - got.usage.cached_tokens;
      EXPECT_LT(before, turn > 0 ? 40u : 1000u) << turn;  // the newest exchange alone
      talk.push_back({text::ChatRole::kAssistant, got.text});
      talk.push_back({text::ChatRole::kUser, "And then?"});
    }
  }
}

TEST(LlamaEngine, EndsAreTold) {
  const auto engine = loaded("chat_smollm", Precision::kF32, 1, 100);
  const std::vector<Expected> want = expected("chat_smollm");
  ChatRequest request = greedy(want[0].messages, 0);
  EXPECT_EQ(answer(*engine, request).end, ChatEnd::kContext);
  EXPECT_EQ(answer(*engine, request).usage.answer_tokens, 100 - want[0].prompt_tokens);
  request.stops = {"ones"};
  const Answered stopped = answer(*engine, request);
  EXPECT_EQ(stopped.end, ChatEnd::kStopText);
  EXPECT_EQ(stopped.text, want[0].text.substr(0, want[0].text.find("ones")));
  const auto long_one = engine->start(greedy(want[2].messages));
  ASSERT_FALSE(long_one.has_value());
  EXPECT_EQ(long_one.error().code, Code::kLimitExceeded);
  EXPECT_NE(long_one.error().message.find("126 tokens, and with an answer the limit is 100"), std::string::npos);
}

TEST(LlamaEngine, UnwantedAnswerFreesItsSlot) {
  const auto engine = loaded("chat_smollm", Precision::kF32, 1);
  const std::vector<Expected> want = expected("chat_smollm");
  std::atomic<bool> wanted = true;
  ChatRequest request = greedy(want[0].messages);
  request.is_wanted = [&] { return wanted.load(); };
  {
    auto started = engine->start(request);
    ASSERT_TRUE(started.has_value());
    std::string text;
    ASSERT_TRUE((*started)->next(text).has_value());
    const auto busy = engine->start(request);
    ASSERT_FALSE(busy.has_value());
    EXPECT_EQ(busy.error().code, Code::kUnavailable);
    wanted = false;
    const auto next = (*started)->next(text);
    ASSERT_FALSE(next.has_value());
    EXPECT_EQ(next.error().code, Code::kCancelled);
    EXPECT_EQ((*started)->next(text).error().code, Code::kCancelled);
  }
  auto unread = engine->start(request);  // its prompt is not wanted from the beginning
  ASSERT_TRUE(unread.has_value());
  std::string none;
  EXPECT_EQ((*unread)->next(none).error().code, Code::kCancelled);
  EXPECT_EQ((*unread)->next(none).error().code, Code::kCancelled);
  unread->reset();
  EXPECT_EQ(answer(*engine, greedy(want[0].messages)).text, want[0].text);
}

TEST(LlamaEngine, LoopIsEnded) {
  const auto engine = loaded("chat_qwen2", Precision::kF32, 1, 512);
  const Answered got = answer(*engine, greedy(expected("chat_qwen2")[0].messages, 0));
  EXPECT_EQ(got.end, ChatEnd::kLoop);
  EXPECT_LT(got.usage.answer_tokens, 400u);
}

TEST(LlamaEngine, SeedDecidesOnADraw) {
  const auto engine = loaded("chat_smollm");
  ChatRequest request = {
      .messages = {{text::ChatRole::kUser, "Hello."}}, .sampling = {.temperature = 1.0f}, .max_tokens = 16};
  const std::string first = answer(*engine, request).text;
  EXPECT_EQ(answer(*engine, request).text, first);
  request.seed = 1;
  EXPECT_NE(answer(*engine, request).text, first);
  request.is_batch = true;
  request.seed = 0;
  EXPECT_EQ(answer(*engine, request).text, first);
}

TEST(LlamaEngine, NarrowPrecisionsAnswer) {
  const std::vector<Expected> want = expected("chat_smollm");
  for (const Precision precision : {Precision::kBf16, Precision::kInt8, Precision::kInt4}) {
    const auto engine = loaded("chat_smollm", precision);
    EXPECT_EQ(engine->precision(), precision);
    const Answered one = answer(*engine, greedy(want[1].messages));
    EXPECT_EQ(one.usage.answer_tokens, kAnswer);
    EXPECT_EQ(answer(*loaded("chat_smollm", precision, 1, 0, 1), greedy(want[1].messages)).text, one.text);
  }
}

TEST(LlamaEngine, SamplingIsTheMakers) {
  const ChatSampling folder = loaded("chat_qwen2")->sampling();
  EXPECT_EQ(folder.temperature, 0.5f);
  EXPECT_EQ(folder.top_k, 7);
  EXPECT_EQ(folder.top_p, 0.75f);
  EXPECT_EQ(folder.repetition_penalty, 1.25f);
  EXPECT_EQ(loaded("chat_smollm")->sampling().temperature, 0.2f);
}

TEST(LlamaEngine, UnfitOptionsAreRefused) {
  const auto files = find_chat_files(kFolder + "chat_smollm", "");
  ASSERT_TRUE(files.has_value());
  const auto context = load_chat_engine({.files = *files, .context = 513});
  ASSERT_FALSE(context.has_value());
  EXPECT_NE(context.error().message.find("can have 512 at most"), std::string::npos) << context.error().message;
  EXPECT_FALSE(load_chat_engine({.files = *files, .conversations = 0}).has_value());
  EXPECT_FALSE(load_chat_engine({.files = *files, .conversations = 65}).has_value());
  // A vocabulary without a template, and no vocabulary at all.
  const auto plain = find_chat_files(kFolder + "smollm_gguf", "");
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_FALSE(load_chat_engine({.files = *plain}).has_value());
  const auto bare = find_chat_files(kFolder + "qwen2", "");
  ASSERT_TRUE(bare.has_value());
  const auto no_words = load_chat_engine({.files = *bare});
  ASSERT_FALSE(no_words.has_value());
  EXPECT_NE(no_words.error().message.find("tokenizer.json' is not there"), std::string::npos);
  EXPECT_FALSE(find_chat_files(kFolder + "chat", "").has_value());
  EXPECT_FALSE(find_chat_files("not-there", "/nowhere").has_value());
  for (const char* const alias : {"smollm2:135m", "HuggingFaceTB/SmolLM2-135M-Instruct"})
    EXPECT_NE(find_chat_files(alias, "/nowhere").error().message.find("`syrinx pull smollm2`"), std::string::npos);
}

}  // namespace
}  // namespace syrinx
