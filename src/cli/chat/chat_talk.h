// A conversation with a language model, line by line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/chat/chat_answer.h"
#include "cli/chat/chat_history.h"

namespace syrinx::cli {

// The other side of the conversation: a terminal.
struct TalkConsole {
  // The next line without its break, after a prompt where one is wanted; nothing at the end.  kCancelled after Ctrl-C.
  std::function<Result<std::optional<std::string>>(std::string_view prompt)> read_line;
  ChatWriter write;                            // answers
  ChatWriter print;                            // what the commands show
  std::function<void(std::string_view)> note;  // errors after which the conversation goes on, and hints
};

// Until the end of the lines, /bye or Ctrl-C at the prompt, all of which are no errors.  Ctrl-C ends an answer alone,
// SIGTERM the conversation: kCancelled.  Oldest exchanges are left out where the context is full, and a note says so.
Status talk(const ChatTask& task, ChatEngine& engine, ChatHistory history, const TalkConsole& console);

}  // namespace syrinx::cli
