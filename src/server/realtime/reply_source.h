// What a conversation is answered with: its text goes in, text comes out bit by bit.  A language model plugs in here;
// until one does, ReadAloud speaks what the client has written.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx::server::realtime {

struct Turn {
  std::string role;  // "user", "assistant", "system"
  std::string text;
  bool is_answered = false;
};

struct Prompt {
  std::string instructions = {};
  std::vector<Turn> turns = {};  // in order
  bool is_input = false;         // they are the response's own, not the conversation's
};

// One that is under way; destroying it breaks it off.  One thread.
class Reply {
 public:
  virtual ~Reply() = default;
  // Appends what has come since; false: that was the last of it.  Does not wait.
  virtual Result<bool> take(std::string& text) = 0;
};

// Any thread.
class ReplySource {
 public:
  virtual ~ReplySource() = default;
  // `wake` is called, from any thread and until the reply is destroyed, when take() has something new.
  virtual Result<std::unique_ptr<Reply>> start(Prompt prompt, std::function<void()> wake) = 0;
};

// Says the texts of the turns that have not been answered.  kInvalidArgument when there are none.
class ReadAloud final : public ReplySource {
 public:
  Result<std::unique_ptr<Reply>> start(Prompt prompt, std::function<void()> wake) override;
};

}  // namespace syrinx::server::realtime
