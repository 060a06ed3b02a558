// The messages of a conversation on a terminal.  Pure; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "text/chat/chat_message.h"

namespace syrinx::cli {

class ChatHistory {
 public:
  explicit ChatHistory(std::vector<text::ChatMessage> messages = {}) : messages_(std::move(messages)) {}

  const std::vector<text::ChatMessage>& messages() const { return messages_; }
  bool ends_in_question() const;  // the last message is the user's
  bool has_system() const;        // the first message is the system's

  void set_system(std::string text);  // in place of the first one; empty: none
  void ask(std::string text);
  void answer(std::string text);  // no message where it is empty, and then without its question
  void take_back();               // the question that the last message is
  void clear();                   // all but the system's first message
  // Leaves out the oldest question with all up to the next one.  False where only one question is left.
  bool drop_oldest();

 private:
  std::vector<text::ChatMessage> messages_;
};

}  // namespace syrinx::cli
