// Source of a conversation's replies: text goes in, text comes out bit by bit.  A language model plugs in here
// (upstream/chat_replies.h); without one, ReadAloud speaks the client's own text.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/speech/markdown.h"

namespace syrinx::server::realtime {

struct Turn {
  std::string role;  // "user", "assistant", "system"
  std::string text;
  bool is_answered = false;
  bool is_heard = false;  // it was spoken
};

struct Prompt {
  std::string instructions = {};
  std::vector<Turn> turns = {};  // in order
  bool is_input = false;         // they are the response's own, not the conversation's
  int64_t max_tokens = 0;        // of the answer, as a language model counts; 0: as many as it likes
  std::string id = {};           // of the session, for the log
};

// One that is under way; destroying it breaks it off.  One thread.
class Reply {
 public:
  virtual ~Reply() = default;
  // Appends what has come since; false: that was the last of it.  Does not wait.
  virtual Result<bool> take(std::string& text) = 0;
  // Behind the last of it: why that is not all of the text, "max_output_tokens" or "content_filter"; null: it is.
  virtual const char* cut_short() const { return nullptr; }
  // How soon take() is to be called again though nobody wakes; absent: not before somebody does.
  virtual std::optional<std::chrono::nanoseconds> looks_again_in() const { return std::nullopt; }
};

// One that begins later.
class LateReply final : public Reply {
 public:
  // Null: not yet; asked again each time.
  using Start = std::function<Result<std::unique_ptr<Reply>>()>;
  explicit LateReply(Start start) : start_(std::move(start)) {}
  Result<bool> take(std::string& text) override;
  const char* cut_short() const override { return begun_ ? begun_->cut_short() : nullptr; }
  std::optional<std::chrono::nanoseconds> looks_again_in() const override {
    return begun_ ? begun_->looks_again_in() : std::nullopt;
  }

 private:
  const Start start_;
  std::unique_ptr<Reply> begun_;
};

// One that is to be heard: without the marks of Markdown, which are for eyes.
class SpokenReply final : public Reply {
 public:
  explicit SpokenReply(std::unique_ptr<Reply> written) : written_(std::move(written)) {}
  Result<bool> take(std::string& text) override;
  const char* cut_short() const override { return written_->cut_short(); }
  std::optional<std::chrono::nanoseconds> looks_again_in() const override { return written_->looks_again_in(); }

 private:
  const std::unique_ptr<Reply> written_;
  text::MarkdownReader reader_;
};

// Any thread.
class ReplySource {
 public:
  virtual ~ReplySource() = default;
  // `wake` is called, from any thread and until the reply is destroyed, when take() has something new.
  virtual Result<std::unique_ptr<Reply>> start(Prompt prompt, std::function<void()> wake) = 0;
};

// Reads out the texts of the turns that have not been answered; spoken turns are not repeated.  kInvalidArgument when
// there are none.
class ReadAloud final : public ReplySource {
 public:
  Result<std::unique_ptr<Reply>> start(Prompt prompt, std::function<void()> wake) override;
};

}  // namespace syrinx::server::realtime
