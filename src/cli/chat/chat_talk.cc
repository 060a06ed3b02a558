#include "cli/chat/chat_talk.h"

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>

#include "base/signals.h"
#include "cli/chat/typed_lines.h"

namespace syrinx::cli {
namespace {

constexpr size_t kAnswerRoom = 512;  // tokens that are kept free for an answer, where no length is given
constexpr const char* kHelp =
    "/clear        forget the conversation\n"
    "/system TEXT  replace the system's message; without TEXT there is none\n"
    "/bye          leave, as Ctrl-D does\n"
    "/help         show this\n"
    "\"\"\"           begin and end a text of several lines\n"
    "Ctrl-C        stop the answer; at the prompt: leave\n";

// SIGTERM ends the program wherever it is.
bool is_interrupt() { return cancel_requested() && cancel_signal() != SIGTERM && cancel_signal() != SIGHUP; }

// The engine refuses the question, and answers the next one.
bool is_refusal(const Error& error) {
  return error.code == Code::kLimitExceeded || error.code == Code::kInvalidArgument || error.code == Code::kUnsupported;
}

class Talk {
 public:
  Talk(const ChatTask& task, ChatEngine& engine, ChatHistory history, const TalkConsole& console)
      : task_(task), engine_(engine), history_(std::move(history)), console_(console) {}

  Status run() {
    for (is_over_ = false; !is_over_;) {
      auto line = console_.read_line(lines_.is_in_block() ? "... " : "> ");
      if (!line) {
        SYRINX_TRY_VOID(after_reading(line.error()));
      } else if (!*line) {
        return console_.print("\n");
      } else {
        SYRINX_TRY_VOID(take(**line));
        // Too late for the answer that it was to end, and no Ctrl-C at the prompt.
        if (is_interrupt()) resume_after_interrupt();
      }
    }
    return {};
  }

 private:
  Status after_reading(const Error& error) {
    if (error.code == Code::kLimitExceeded) {
      console_.note(error.message);
      return {};
    }
    if (error.code != Code::kCancelled || !is_interrupt()) return tl::unexpected(error);
    is_over_ = !lines_.is_in_block();
    lines_.abandon_block();
    resume_after_interrupt();
    return console_.print("\n");
  }

  Status take(std::string_view line) {
    auto typed = lines_.push(line);
    if (!typed) {
      console_.note(typed.error().message);
      return {};
    }
    if (typed->kind == Typed::Kind::kCommand) return command(typed->text, std::move(typed->rest));
    if (typed->kind == Typed::Kind::kQuestion) return ask(std::move(typed->text));
    return {};
  }

  Status command(const std::string& name, std::string rest) {
    if (name == "/bye" || name == "/exit") {
      is_over_ = true;
    } else if (name == "/clear") {
      history_.clear();
      console_.note("the conversation is forgotten");
    } else if (name == "/system") {
      console_.note(rest.empty() ? "there is no system's message now" : "the system's message is replaced");
      history_.set_system(std::move(rest));
    } else if (name == "/help") {
      return console_.print(kHelp);
    } else {
      console_.note(fmt::format("'{}' is no command; /help lists them", name));
    }
    return {};
  }

  Status ask(std::string question) {
    history_.ask(std::move(question));
    auto answer = start();
    if (!answer) {
      history_.take_back();
      return go_on(answer.error());
    }
    std::string text;
    const Status status = write_answer(task_, engine_, **answer, console_.write, text);
    ++number_;
    history_.answer(std::move(text));  // the part of one that is interrupted, too
    if (!status) return go_on(status.error());
    if (const std::string why = describe_end((*answer)->end(), engine_); !why.empty()) console_.note(why);
    return {};
  }

  Status go_on(const Error& error) {
    if (error.code == Code::kCancelled && is_interrupt()) {
      resume_after_interrupt();
      return {};
    }
    if (!is_refusal(error)) return tl::unexpected(error);
    console_.note(error.message);
    return {};
  }

  bool is_short_of_room(const ChatAnswer& answer) const {
    const size_t wanted = task_.max_tokens > 0 ? task_.max_tokens : kAnswerRoom;
    return answer.usage().prompt_tokens + std::min(wanted, engine_.context() / 4) > engine_.context();
  }

  // Leaves old exchanges out until there is room; they stay where even that does not help.
  Result<std::unique_ptr<ChatAnswer>> start() {
    ChatHistory kept = history_;
    for (size_t left_out = 0;;) {
      if (cancel_requested()) return fail(Code::kCancelled, "stopped while answering");
      auto answer = engine_.start(request_of(task_, kept.messages(), number_));
      const bool is_too_long = answer ? is_short_of_room(**answer) : answer.error().code == Code::kLimitExceeded;
      if (is_too_long && kept.drop_oldest()) {
        ++left_out;
        continue;
      }
      if (answer && left_out > 0) {
        history_ = std::move(kept);
        console_.note(fmt::format(
            "the conversation is longer than {} tokens: {} left out", engine_.context(),
            left_out == 1 ? "its oldest exchange is" : fmt::format("its {} oldest exchanges are", left_out)));
      }
      return answer;
    }
  }

  const ChatTask& task_;
  ChatEngine& engine_;
  ChatHistory history_;
  const TalkConsole& console_;
  TypedLines lines_;
  uint64_t number_ = 0;  // of the next answer
  bool is_over_ = false;
};

}  // namespace

Status talk(const ChatTask& task, ChatEngine& engine, ChatHistory history, const TalkConsole& console) {
  return Talk(task, engine, std::move(history), console).run();
}

}  // namespace syrinx::cli
