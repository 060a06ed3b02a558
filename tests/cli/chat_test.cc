#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <deque>

#include "base/json.h"
#include "base/signals.h"
#include "cli/chat/chat_answer.h"
#include "cli/chat/chat_history.h"
#include "cli/chat/chat_messages.h"
#include "cli/chat/chat_talk.h"
#include "cli/chat/typed_lines.h"
#include "cli/chat/typed_text.h"
#include "fake_chat_engine.h"

namespace syrinx::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using text::ChatMessage;
using text::ChatRole;

std::vector<std::string> in_words(const std::vector<ChatMessage>& messages) {
  std::vector<std::string> words;
  for (const ChatMessage& message : messages)
    words.push_back(std::string(chat_role_name(message.role)) + ": " + message.content);
  return words;
}

TEST(ChatHistory, AnswersFollowTheirQuestions) {
  ChatHistory history;
  EXPECT_FALSE(history.ends_in_question());
  history.ask("a");
  EXPECT_TRUE(history.ends_in_question());
  history.answer("b");
  history.set_system("be kind");
  history.ask("c");
  EXPECT_THAT(in_words(history.messages()), ElementsAre("system: be kind", "user: a", "assistant: b", "user: c"));
  history.answer("");
  EXPECT_THAT(in_words(history.messages()), ElementsAre("system: be kind", "user: a", "assistant: b"));
  history.set_system("be short");
  history.clear();
  EXPECT_THAT(in_words(history.messages()), ElementsAre("system: be short"));
  history.set_system("");
  EXPECT_TRUE(history.messages().empty());
  history.clear();
  history.take_back();
  EXPECT_TRUE(history.messages().empty());
}

TEST(ChatHistory, OldestExchangeIsLeftOutFirst) {
  ChatHistory history;
  EXPECT_FALSE(history.drop_oldest());
  history.set_system("s");
  EXPECT_FALSE(history.drop_oldest());
  for (const char* const name : {"a", "b"}) {
    history.ask(name);
    history.answer("to " + std::string(name));
  }
  history.ask("c");
  EXPECT_TRUE(history.drop_oldest());
  EXPECT_THAT(in_words(history.messages()), ElementsAre("system: s", "user: b", "assistant: to b", "user: c"));
  EXPECT_TRUE(history.drop_oldest());
  EXPECT_FALSE(history.drop_oldest());
  EXPECT_THAT(in_words(history.messages()), ElementsAre("system: s", "user: c"));
}

Typed typed(TypedLines& lines, std::string_view line) {
  const auto result = lines.push(line);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(Typed{});
}

TEST(TypedLines, EachLineIsOneQuestion) {
  TypedLines lines;
  EXPECT_EQ(typed(lines, "").kind, Typed::Kind::kNothing);
  EXPECT_EQ(typed(lines, " \t\r").kind, Typed::Kind::kNothing);
  const Typed question = typed(lines, "  why? \r");
  EXPECT_EQ(question.kind, Typed::Kind::kQuestion);
  EXPECT_EQ(question.text, "why?");
}

TEST(TypedLines, CommandsAreASlashAndLetters) {
  TypedLines lines;
  const Typed command = typed(lines, "/system  be kind ");
  EXPECT_EQ(command.kind, Typed::Kind::kCommand);
  EXPECT_EQ(command.text, "/system");
  EXPECT_EQ(command.rest, "be kind");
  EXPECT_EQ(typed(lines, "/bye").kind, Typed::Kind::kCommand);
  for (const char* const question : {"/", "/etc/hosts holds what?", "/2", "a /bye"})
    EXPECT_EQ(typed(lines, question).kind, Typed::Kind::kQuestion) << question;
}

TEST(TypedLines, QuotesHoldSeveralLines) {
  TypedLines lines;
  EXPECT_EQ(typed(lines, "\"\"\"first").kind, Typed::Kind::kMore);
  EXPECT_TRUE(lines.is_in_block());
  EXPECT_EQ(typed(lines, "").kind, Typed::Kind::kMore);
  EXPECT_EQ(typed(lines, "  /bye").kind, Typed::Kind::kMore);
  const Typed block = typed(lines, "last\"\"\" ");
  EXPECT_EQ(block.kind, Typed::Kind::kQuestion);
  EXPECT_EQ(block.text, "first\n\n  /bye\nlast");
  EXPECT_FALSE(lines.is_in_block());
  EXPECT_EQ(typed(lines, "\"\"\"one line\"\"\"").text, "one line");
  EXPECT_EQ(typed(lines, "\"\"\"").kind, Typed::Kind::kMore);
  EXPECT_EQ(typed(lines, "a").kind, Typed::Kind::kMore);
  EXPECT_EQ(typed(lines, "\"\"\"").text, "a");
  EXPECT_EQ(typed(lines, "\"\"\"").kind, Typed::Kind::kMore);
  EXPECT_EQ(typed(lines, "\"\"\"").kind, Typed::Kind::kNothing);
  EXPECT_EQ(typed(lines, "\"\"\"a").kind, Typed::Kind::kMore);
  lines.abandon_block();
  EXPECT_EQ(typed(lines, "b").text, "b");
}

TEST(TypedLines, LongBlockIsRefusedAtItsEnd) {
  TypedLines lines;
  const std::string line(ChatRequest::kMaxContentBytes / 2, 'a');
  for (const char* const begin : {"\"\"\"", "", "", "b"})
    EXPECT_EQ(typed(lines, begin + line).kind, Typed::Kind::kMore);
  const auto refused = lines.push("\"\"\"");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimitExceeded);
  EXPECT_EQ(typed(lines, "short").text, "short");
}

// Text that waits in a pipe.
class Pipe {
 public:
  explicit Pipe(std::string_view text) {
    EXPECT_EQ(::pipe(ends_), 0);
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends_[1]);
  }
  ~Pipe() { ::close(ends_[0]); }
  int end() const { return ends_[0]; }

 private:
  int ends_[2];
};

TEST(LineReader, LinesComeInOrder) {
  const Pipe pipe("a\n\nb c\r\nlast");
  LineReader lines(pipe.end(), 10);
  for (const char* const line : {"a", "", "b c\r", "last"}) EXPECT_EQ(**lines.next(), line);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(lines.next()->has_value());
}

TEST(LineReader, LongLineIsPassedOver) {
  const Pipe pipe(std::string(10, 'a') + "\n" + std::string(11, 'b') + "\nc\n" + std::string(30000, 'd'));
  LineReader lines(pipe.end(), 10);
  EXPECT_EQ(**lines.next(), std::string(10, 'a'));
  EXPECT_EQ(lines.next().error().code, Code::kLimitExceeded);
  EXPECT_EQ(**lines.next(), "c");
  EXPECT_EQ(lines.next().error().code, Code::kLimitExceeded);
  EXPECT_FALSE(lines.next()->has_value());
}

TEST(LineReader, InterruptEndsTheWait) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  request_cancel();
  LineReader lines(ends[0], 10);
  EXPECT_EQ(lines.next().error().code, Code::kCancelled);
  EXPECT_EQ(read_to_end(ends[0], 10, "a pipe").error().code, Code::kCancelled);
  clear_cancel();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ReadToEnd, TextHasALimit) {
  EXPECT_EQ(*read_to_end(Pipe("0123456789").end(), 10, "a pipe"), "0123456789");
  const auto refused = read_to_end(Pipe("0123456789a").end(), 10, "a pipe");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimitExceeded);
  EXPECT_THAT(refused.error().message, HasSubstr("a pipe holds more than 10 bytes"));
  const int folder = ::open("/", O_RDONLY);
  EXPECT_EQ(read_to_end(folder, 10, "a folder").error().code, Code::kIo);
  ::close(folder);
}

TEST(ChatMessages, FileIsAListOfMessages) {
  const auto messages = parse_chat_messages(
      R"([{"role":"developer","content":"be kind"},{"role":"user","content":[{"type":"input_text","text":"a"}]},)"
      R"({"content":null,"role":"assistant"}])",
      "file");
  ASSERT_TRUE(messages) << messages.error().message;
  EXPECT_THAT(in_words(*messages), ElementsAre("system: be kind", "user: a", "assistant: "));
  EXPECT_TRUE(parse_chat_messages("[]", "file")->empty());
}

TEST(ChatMessages, FaultsNameTheMessage) {
  const auto fault = [](const std::string& second) {
    const auto messages = parse_chat_messages(R"([{"role":"user","content":"a"},)" + second + "]", "file");
    return messages ? Error{Code::kInternal, "taken"} : messages.error();
  };
  EXPECT_THAT(fault("1").message, HasSubstr("message 2 of 'file': a message must be an object with a 'role'"));
  EXPECT_EQ(fault(R"({"role":"tool","content":"a"})").code, Code::kUnsupported);
  EXPECT_THAT(fault(R"({"role":"judge","content":"a"})").message, HasSubstr("message 2 of 'file'"));
  for (const char* const text : {"", "{}", "[", "\"a\"", "[{\"role\":\"user\",\"role\":\"user\"}]"})
    EXPECT_EQ(parse_chat_messages(text, "file").error().code, Code::kDataLoss) << text;
}

TEST(ChatMessages, CountAndBytesHaveLimits) {
  const auto list = [](size_t count, const std::string& content) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i)
      text += (i == 0 ? "" : ",") + std::string(R"({"role":"user","content":")") + content + "\"}";
    return parse_chat_messages(text + "]", "file");
  };
  EXPECT_TRUE(list(ChatRequest::kMaxMessages, "a"));
  EXPECT_EQ(list(ChatRequest::kMaxMessages + 1, "a").error().code, Code::kLimitExceeded);
  EXPECT_TRUE(list(2, std::string(ChatRequest::kMaxContentBytes / 2, 'a')));
  EXPECT_EQ(list(2, std::string(ChatRequest::kMaxContentBytes / 2 + 1, 'a')).error().code, Code::kLimitExceeded);
  EXPECT_EQ(parse_chat_messages(std::string(kMaxMessagesBytes + 1, ' '), "file").error().code, Code::kLimitExceeded);
}

struct Answered {
  std::vector<std::string> written;
  std::string text;
  Status status;
};

Answered answered(FakeChatEngine& engine, const ChatTask& task) {
  Answered result;
  const auto answer = engine.start(request_of(task, {{ChatRole::kUser, "one two"}}, 0));
  const ChatWriter write = [&](std::string_view text) {
    result.written.emplace_back(text);
    return Status();
  };
  result.status = write_answer(task, engine, **answer, write, result.text);
  return result;
}

TEST(ChatAnswer, PiecesAreWrittenAsTheyCome) {
  FakeChatEngine engine;
  engine.pieces = {"", "yes", "", ", sir", ""};
  const Answered got = answered(engine, {});
  EXPECT_TRUE(got.status);
  EXPECT_THAT(got.written, ElementsAre("yes", ", sir", "\n"));
  EXPECT_EQ(got.text, "yes, sir");
  engine.pieces = {"a line\n"};
  EXPECT_THAT(answered(engine, {}).written, ElementsAre("a line\n"));
  engine.pieces = {""};
  EXPECT_THAT(answered(engine, {}).written, ElementsAre("\n"));
}

TEST(ChatAnswer, JsonEndsWithTheFigures) {
  FakeChatEngine engine;
  for (const auto& [end, name] : {std::pair{ChatEnd::kStop, "stop"},
                                  {ChatEnd::kStopText, "stop_text"},
                                  {ChatEnd::kMaxTokens, "max_tokens"},
                                  {ChatEnd::kContext, "context"},
                                  {ChatEnd::kLoop, "loop"}}) {
    engine.end = end;
    const Answered got = answered(engine, {.json = true});
    ASSERT_EQ(got.written.size(), 4u);
    EXPECT_EQ(got.written[1], "{\"text\":\", \"}\n");
    const auto last = parse_json(got.written[3], "last");
    ASSERT_TRUE(last) << got.written[3];
    EXPECT_EQ(*last->find("end")->string(), name);
    EXPECT_EQ(*last->find("prompt_tokens")->whole(), 2);
    EXPECT_EQ(*last->find("answer_tokens")->whole(), 3);
    EXPECT_EQ(*last->find("precision")->string(), "int8");
    for (const char* const field : {"cached_tokens", "load_ms", "first_token_ms", "total_ms", "threads", "context",
                                    "prompt_tokens_per_second", "answer_tokens_per_second", "peak_rss_bytes"})
      EXPECT_NE(last->find(field), nullptr) << field;
  }
}

TEST(ChatAnswer, FaultFollowsTheTextBeforeIt) {
  FakeChatEngine engine;
  engine.before_piece = [](size_t told) { return told < 1 ? Status() : fail(Code::kInternal, "broken"); };
  const Answered got = answered(engine, {});
  EXPECT_EQ(got.status.error().code, Code::kInternal);
  EXPECT_THAT(got.written, ElementsAre("yes", "\n"));
  EXPECT_EQ(got.text, "yes");
}

TEST(ChatAnswer, InterruptEndsIt) {
  FakeChatEngine engine;
  engine.before_piece = [](size_t told) {
    if (told == 1) request_cancel();
    return Status();
  };
  const Answered got = answered(engine, {});
  EXPECT_EQ(got.status.error().code, Code::kCancelled);
  EXPECT_EQ(got.text, "yes, ");
  EXPECT_FALSE(engine.requests[0].is_wanted());
  clear_cancel();
  EXPECT_TRUE(engine.requests[0].is_wanted());
}

TEST(ChatAnswer, ClosedOutputEndsIt) {
  FakeChatEngine engine;
  const auto answer = engine.start(request_of({}, {{ChatRole::kUser, "a"}}, 0));
  std::string text;
  const Status status = write_answer(
      {}, engine, **answer, [](std::string_view) { return Status(fail(Code::kIo, "closed")); }, text);
  EXPECT_EQ(status.error().code, Code::kIo);
}

// A conversation of given lines; an empty one in place of Ctrl-C at the prompt.
class ChatTalk : public testing::Test {
 protected:
  void TearDown() override { clear_cancel(); }
  Status talk(std::deque<std::string> lines, ChatHistory history = ChatHistory()) {
    TalkConsole console;
    console.read_line = [&](std::string_view prompt) -> Result<std::optional<std::string>> {
      prompts_ += prompt;
      if (cancel_requested()) return fail(Code::kCancelled, "stopped while reading");
      if (lines.empty()) return std::optional<std::string>();
      std::string line = std::move(lines.front());
      lines.pop_front();
      if (line == kInterrupt) {
        request_cancel();
        return fail(Code::kCancelled, "stopped while reading");
      }
      if (line == kTerminate) {
        raise(SIGTERM);
        return fail(Code::kCancelled, "stopped while reading");
      }
      return std::optional(std::move(line));
    };
    const ChatWriter write = [&](std::string_view text) {
      written_ += text;
      return Status();
    };
    console.write = console.print = write;
    console.note = [&](std::string_view sentence) { notes_.emplace_back(sentence); };
    return cli::talk(task_, engine_, std::move(history), console);
  }
  std::vector<std::string> asked(size_t request) const { return in_words(engine_.requests.at(request).messages); }

  static constexpr const char* kInterrupt = "\x03";
  static constexpr const char* kTerminate = "\x04";
  ChatTask task_;
  FakeChatEngine engine_;
  std::string written_, prompts_;
  std::vector<std::string> notes_;
};

TEST_F(ChatTalk, QuestionsCarryTheConversation) {
  task_ = {.sampling = {.temperature = 0.5f}, .seed = 7, .stops = {"."}, .max_tokens = 9};
  EXPECT_TRUE(talk({"one", "", "two"}));
  EXPECT_EQ(written_, "yes, sir\nyes, sir\n\n");
  EXPECT_EQ(prompts_, "> > > > ");
  EXPECT_TRUE(notes_.empty());
  EXPECT_THAT(asked(0), ElementsAre("user: one"));
  EXPECT_THAT(asked(1), ElementsAre("user: one", "assistant: yes, sir", "user: two"));
  for (size_t i = 0; i < 2; ++i) {
    const ChatRequest& request = engine_.requests[i];
    EXPECT_EQ(request.seed, 7 + i);
    EXPECT_EQ(request.sampling.temperature, 0.5f);
    EXPECT_THAT(request.stops, ElementsAre("."));
    EXPECT_EQ(request.max_tokens, 9u);
  }
}

TEST_F(ChatTalk, CommandsChangeTheConversation) {
  EXPECT_TRUE(talk({"/system be kind", "one", "/clear", "two", "/system", "three", "/help", "/what", "/bye", "four"}));
  EXPECT_THAT(asked(0), ElementsAre("system: be kind", "user: one"));
  EXPECT_THAT(asked(1), ElementsAre("system: be kind", "user: two"));
  EXPECT_THAT(asked(2), ElementsAre("user: two", "assistant: yes, sir", "user: three"));
  EXPECT_EQ(engine_.requests.size(), 3u);
  EXPECT_THAT(written_, HasSubstr("/bye "));
  EXPECT_THAT(notes_.back(), HasSubstr("'/what' is no command"));
}

TEST_F(ChatTalk, BlockIsOneQuestion) {
  EXPECT_TRUE(talk({"\"\"\"one", "two", "\"\"\""}));
  EXPECT_THAT(asked(0), ElementsAre("user: one\ntwo"));
  EXPECT_EQ(prompts_, "> ... ... > ");
}

TEST_F(ChatTalk, InterruptStopsTheAnswerAlone) {
  engine_.before_piece = [this](size_t told) {
    if (told == 2 && engine_.requests.size() == 1) request_cancel();
    return told == 2 && engine_.requests.size() == 1 ? fail(Code::kCancelled, "not wanted") : Status();
  };
  EXPECT_TRUE(talk({"one", "two"}));
  EXPECT_EQ(written_, "yes, \nyes, sir\n\n");
  EXPECT_THAT(asked(1), ElementsAre("user: one", "assistant: yes, ", "user: two"));
}

TEST_F(ChatTalk, InterruptBeforeTheAnswerForgetsTheQuestion) {
  engine_.before_piece = [this](size_t) {
    if (engine_.requests.size() == 1) request_cancel();
    return engine_.requests.size() == 1 ? fail(Code::kCancelled, "not wanted") : Status();
  };
  EXPECT_TRUE(talk({"one", "two"}));
  EXPECT_THAT(asked(1), ElementsAre("user: two"));
}

TEST_F(ChatTalk, LateInterruptDoesNotLeave) {
  engine_.before_piece = [](size_t told) {
    if (told == 2) request_cancel();  // the last piece is on its way
    return Status();
  };
  EXPECT_TRUE(talk({"one", "two"}));
  EXPECT_EQ(engine_.requests.size(), 2u);
  EXPECT_EQ(written_, "yes, sir\nyes, sir\n\n");
}

TEST_F(ChatTalk, InterruptEndsLeavingOut) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 50; ++i) messages.insert(messages.end(), {{ChatRole::kUser, "1 2"}, {ChatRole::kAssistant, "3"}});
  engine_.context_tokens = 20;
  int starts = 0;
  engine_.before_start = [&] {
    if (++starts == 3) request_cancel();
  };
  EXPECT_TRUE(talk({"one"}, ChatHistory(messages)));
  EXPECT_EQ(starts, 3);
  EXPECT_TRUE(engine_.requests.empty());
  EXPECT_TRUE(talk({"two"}, ChatHistory(messages)));
  EXPECT_THAT(in_words(engine_.requests.back().messages).back(), "user: two");
}

TEST_F(ChatTalk, InterruptAtThePromptLeaves) {
  EXPECT_TRUE(talk({kInterrupt, "one"}));
  EXPECT_TRUE(engine_.requests.empty());
  EXPECT_TRUE(talk({"\"\"\"one", kInterrupt, "two", kInterrupt, "three"}));
  EXPECT_EQ(engine_.requests.size(), 1u);
  EXPECT_THAT(asked(0), ElementsAre("user: two"));
}

TEST_F(ChatTalk, TerminationEndsWithAnError) {
  install_signal_handlers();
  EXPECT_EQ(talk({kTerminate, "one"}).error().code, Code::kCancelled);
  EXPECT_EQ(cancel_signal(), SIGTERM);
  clear_cancel();
  install_signal_handlers();
  engine_.before_piece = [](size_t) {
    raise(SIGTERM);
    return Status();
  };
  EXPECT_EQ(talk({"one", "two"}).error().code, Code::kCancelled);
  EXPECT_EQ(engine_.requests.size(), 1u);
}

TEST_F(ChatTalk, FullContextLeavesOldExchangesOut) {
  engine_.context_tokens = 20;  // 5 of them for an answer
  engine_.pieces = {"a b c"};
  ChatHistory history({{ChatRole::kSystem, "be kind"}});
  EXPECT_TRUE(talk({"1 1", "2 2", "3 3", "4 4", "5 5 5 5 5 5 5 5 5 5"}, std::move(history)));
  EXPECT_EQ(count_words(engine_.requests[2].messages), 14u);
  EXPECT_THAT(in_words(engine_.requests[4].messages), ElementsAre("system: be kind", "user: 2 2", "assistant: a b c",
                                                                  "user: 3 3", "assistant: a b c", "user: 4 4"));
  EXPECT_THAT(in_words(engine_.requests.back().messages), ElementsAre("system: be kind", "user: 5 5 5 5 5 5 5 5 5 5"));
  EXPECT_THAT(notes_, ElementsAre("the conversation is longer than 20 tokens: its oldest exchange is left out",
                                  "the conversation is longer than 20 tokens: its 3 oldest exchanges are left out"));
}

TEST_F(ChatTalk, QuestionThatIsTooLongIsRefused) {
  engine_.context_tokens = 8;
  EXPECT_TRUE(talk({"one", "1 2 3 4 5 6 7 8 9", "two"}));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("tokens"));
  EXPECT_THAT(in_words(engine_.requests.back().messages), ElementsAre("user: one", "assistant: yes, sir", "user: two"));
}

TEST_F(ChatTalk, InvalidTextIsRefused) {
  EXPECT_TRUE(talk({"\xff", "two"}));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("UTF-8")));
  EXPECT_THAT(asked(0), ElementsAre("user: two"));
}

TEST_F(ChatTalk, CutAnswerSaysWhy) {
  engine_.end = ChatEnd::kContext;
  EXPECT_TRUE(talk({"one"}));
  engine_.end = ChatEnd::kLoop;
  EXPECT_TRUE(talk({"one"}));
  engine_.end = ChatEnd::kMaxTokens;
  EXPECT_TRUE(talk({"one"}));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("100 tokens is full"), HasSubstr("only repeats itself")));
}

TEST_F(ChatTalk, FaultOfTheModelEndsIt) {
  engine_.before_piece = [](size_t) { return fail(Code::kInternal, "broken"); };
  EXPECT_EQ(talk({"one", "two"}).error().code, Code::kInternal);
  EXPECT_EQ(engine_.requests.size(), 1u);
}

}  // namespace
}  // namespace syrinx::cli
