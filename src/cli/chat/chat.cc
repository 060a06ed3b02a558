// syrinx chat: a language model answers a text, or talks on a terminal.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/memory.h"
#include "base/signals.h"
#include "cli/chat/chat_answer.h"
#include "cli/chat/chat_history.h"
#include "cli/chat/chat_messages.h"
#include "cli/chat/chat_talk.h"
#include "cli/chat/typed_text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "engine/chat/chat_engine.h"
#include "engine/families/default_models.h"
#include "engine/families/families.h"
#include "engine/families/find_chat_files.h"
#include "store/paths.h"

namespace syrinx::cli {
namespace {

struct ChatArguments {
  std::vector<std::string> text;
  std::string model;
  std::optional<std::string> system;
  std::string messages;
  std::string precision;
  std::vector<std::string> stops;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
  uint64_t seed = 0;
  uint64_t max_tokens = 0;
  uint64_t context = 0;
  int threads = 0;
  bool json = false;
};

std::optional<float> as_float(const std::optional<double>& value) {
  return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

// "'top_p' is 2; ..." names an option as requests do.
std::string with_flag(const std::string& sentence) {
  const size_t end = sentence.find('\'', 1);
  if (!sentence.starts_with('\'') || end == std::string::npos) return sentence;
  std::string flag = "--" + sentence.substr(1, end - 1);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag + sentence.substr(end + 1);
}

Result<ChatTask> task_of(const ChatArguments& arguments) {
  ChatTask task;
  task.sampling = {.temperature = as_float(arguments.temperature),
                   .top_p = as_float(arguments.top_p),
                   .min_p = as_float(arguments.min_p),
                   .top_k = arguments.top_k,
                   .repetition_penalty = as_float(arguments.repetition_penalty)};
  if (const Status status = check_chat_sampling(task.sampling); !status)
    return fail(status.error().code, "{}", with_flag(status.error().message));
  task.seed = arguments.seed;
  task.stops = arguments.stops;
  task.max_tokens = arguments.max_tokens;
  task.json = arguments.json;
  return task;
}

Result<std::string> read_standard_input() {
  SYRINX_TRY(std::string text, read_to_end(STDIN_FILENO, ChatRequest::kMaxContentBytes, "standard input"));
  text.erase(text.find_last_not_of("\r\n") + 1);
  return text;
}

// --system and --messages.
Result<ChatHistory> history_of(const ChatArguments& arguments) {
  std::vector<text::ChatMessage> messages;
  if (!arguments.messages.empty()) {
    const bool is_standard_input = arguments.messages == "-";
    Descriptor file(-1);
    if (!is_standard_input) {
      SYRINX_TRY(file, Descriptor::open(arguments.messages));
    }
    const std::string name = is_standard_input ? "standard input" : arguments.messages;
    SYRINX_TRY(const std::string json,
               read_to_end(is_standard_input ? STDIN_FILENO : file.value(), kMaxMessagesBytes, name));
    SYRINX_TRY(messages, parse_chat_messages(json, name));
  }
  ChatHistory history(std::move(messages));
  if (arguments.system && history.has_system())
    return fail(Code::kInvalidArgument, "both --system and the first message of --messages are the system's; give one");
  if (arguments.system) history.set_system(*arguments.system);
  return history;
}

// The text of the arguments, then that of a pipe.
Result<std::string> question_of(const ChatArguments& arguments) {
  const bool is_named_input = arguments.text.size() == 1 && arguments.text[0] == "-";
  std::string question;
  if (!is_named_input)
    for (const std::string& word : arguments.text) question += (question.empty() ? "" : " ") + word;
  const bool is_taken = arguments.messages == "-" || ::fcntl(STDIN_FILENO, F_GETFD) < 0;  // or closed
  if (is_named_input && arguments.messages == "-")
    return fail(Code::kInvalidArgument, "the text and --messages both come from standard input; give one as a file");
  if (!is_taken && (is_named_input || !is_terminal(STDIN_FILENO))) {
    SYRINX_TRY(const std::string piped, read_standard_input());
    if (!question.empty() && !piped.empty()) question += "\n\n";
    question += piped;
  }
  if (question.find_first_not_of(" \t\r\n") == std::string::npos)
    return fail(Code::kInvalidArgument, "no text was given; write it behind `syrinx chat`, or to standard input");
  return question;
}

Result<std::shared_ptr<ChatEngine>> load(const ChatArguments& arguments, const UserPaths& paths, ChatFiles files) {
  ChatEngineOptions options;
  if (!arguments.precision.empty()) {
    SYRINX_TRY(options.precision, parse_precision(arguments.precision));
  }
  options.cache_folder = packed_folder(paths, files);
  options.files = std::move(files);
  options.threads = arguments.threads;
  options.context = arguments.context;
  StatusLine line(arguments.json);
  line.show("loading " + options.files.name);
  SYRINX_TRY(std::shared_ptr<ChatEngine> engine, load_chat_engine(std::move(options)));
  give_back_unused_pages();
  if (cancel_requested()) return fail(Code::kCancelled, "stopped while loading");
  return engine;
}

ChatWriter writer(bool json) { return json ? &print : &print_words; }

Status answer_once(const ChatTask& task, ChatEngine& engine, const ChatHistory& history) {
  SYRINX_TRY(const std::unique_ptr<ChatAnswer> answer, engine.start(request_of(task, history.messages(), 0)));
  std::string text;
  SYRINX_TRY_VOID(write_answer(task, engine, *answer, writer(task.json), text));
  if (const std::string why = describe_end(answer->end(), engine); !why.empty() && !task.json) note(why);
  return {};
}

Status talk_on_terminal(const ChatTask& task, ChatEngine& engine, ChatHistory history) {
  LineReader lines(STDIN_FILENO, ChatRequest::kMaxContentBytes);
  const bool has_prompt = !task.json && is_terminal(STDOUT_FILENO);
  TalkConsole console;
  console.read_line = [&](std::string_view prompt) -> Result<std::optional<std::string>> {
    if (has_prompt) SYRINX_TRY_VOID(print(prompt));
    return lines.next();
  };
  console.write = writer(task.json);
  console.print = [&](std::string_view text) { return has_prompt ? print(text) : Status(); };
  console.note = note;
  return talk(task, engine, std::move(history), console);
}

Status run_chat(const ChatArguments& arguments) {
  SYRINX_TRY(const ChatTask task, task_of(arguments));
  SYRINX_TRY(const UserPaths paths, user_paths());
  SYRINX_TRY(ChatFiles files, find_chat_files(arguments.model, models_folder(paths)));
  SYRINX_TRY(ChatHistory history, history_of(arguments));
  const bool is_asked = history.ends_in_question();
  if (is_asked && !arguments.text.empty())
    return fail(Code::kInvalidArgument, "the last message of --messages is a question already; leave the text out");
  const bool is_talk = !is_asked && arguments.text.empty() && arguments.messages != "-" && is_terminal(STDIN_FILENO);
  if (!is_asked && !is_talk) {
    SYRINX_TRY(std::string question, question_of(arguments));
    history.ask(std::move(question));
  }
  // Before the model is loaded, which takes longer.
  ChatRequest first = request_of(task, history.messages(), 0);
  if (is_talk) first.messages.push_back({text::ChatRole::kUser, "-"});
  SYRINX_TRY_VOID(check_chat_request(first));
  SYRINX_TRY(const std::shared_ptr<ChatEngine> engine, load(arguments, paths, std::move(files)));
  return is_talk ? talk_on_terminal(task, *engine, std::move(history)) : answer_once(task, *engine, history);
}

void add_model_options(Command& command, ChatArguments& arguments) {
  command
      .option(
          "--model", arguments.model,
          (std::string("Name of an installed language model, or a path; ") + kDefaultChatModel + " by default").c_str())
      .type("NAME|PATH");
  std::vector<std::string> precisions;
  for (const Precision precision : kAllPrecisions) precisions.emplace_back(precision_name(precision));
  command.option("--precision", arguments.precision, "Arithmetic of the model; by default its family's")
      .one_of(precisions);
  command.option("--threads", arguments.threads, "Threads to compute with; 0: as many as there are cores, up to 8")
      .type("N")
      .show_default();
  command
      .option("--context", arguments.context,
              "Tokens of a conversation with its answers; 0: 4096, or less where the model knows less")
      .type("N")
      .show_default();
}

void add_sampling_options(Command& command, ChatArguments& arguments) {
  command
      .option("--temperature", arguments.temperature,
              "0 to 2: how far from the likeliest tokens; 0 takes the likeliest; by default the model's")
      .type("T");
  command.option("--top-k", arguments.top_k, "Draw from so many tokens, 0 from all; by default the model's").type("N");
  command
      .option("--top-p", arguments.top_p, "Draw from the likeliest tokens of this probability; by default the model's")
      .type("P");
  command
      .option("--min-p", arguments.min_p,
              "Leave out tokens below this share of the likeliest one's probability; by default the model's")
      .type("P");
  command
      .option("--repetition-penalty", arguments.repetition_penalty,
              "0.5 to 2: above 1 repetitions are less likely; by default the model's")
      .type("R");
  command.option("--seed", arguments.seed, "Seed of the draws: the same seed gives the same answers")
      .type("N")
      .show_default();
  command.option("--max-tokens", arguments.max_tokens, "Tokens of an answer at most; 0: as many as the context holds")
      .type("N")
      .show_default();
  command
      .option("--stop", arguments.stops,
              "A text that ends the answer and is not part of it; may be given up to 4 times")
      .type("TEXT");
}

}  // namespace

void add_chat(Command& tree) {
  auto arguments = std::make_shared<ChatArguments>();
  Command command = tree.add("chat", "Ask a language model, or talk to it on the terminal");
  command
      .option(
          "text", arguments->text,
          "The question, before the text of a pipe; - or nothing reads standard input; on a terminal a conversation")
      .type("TEXT");
  command.option("--system", arguments->system, "The system's message: how the model shall answer").type("TEXT");
  command
      .option("--messages", arguments->messages,
              "The conversation so far: a JSON list of {\"role\": ..., \"content\": ...}; - is standard input")
      .type("FILE");
  add_model_options(command, *arguments);
  add_sampling_options(command, *arguments);
  command.flag("--json", arguments->json,
               "One JSON object a line: each piece of the text, then the end with the figures");
  command.examples(
      "  syrinx chat \"Why is the sky blue?\"\n"
      "  syrinx chat\n"
      "  git diff | syrinx chat \"Describe these changes in one sentence.\"\n"
      "  syrinx chat --system \"Answer in French.\" --temperature 0 \"Good morning.\"\n"
      "  syrinx chat --model models/chat.gguf --messages conversation.json --json");
  command.run([arguments] { return run_chat(*arguments); });
}

}  // namespace syrinx::cli
