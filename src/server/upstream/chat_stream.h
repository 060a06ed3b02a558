// The answer of a chat endpoint of OpenAI's kind, as it comes: server-sent events, each with a piece of the text.
//
// Whatever the bytes are and wherever they are cut: the text is UTF-8 and ends between characters, and no more is kept
// than a line and an event of kMaxEventBytes.  Pure; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx::server::upstream {

class ChatStream {
 public:
  static constexpr size_t kMaxEventBytes = size_t{1} << 20;  // and of a line

  // Appends to `text` what has become known of it.  kUnavailable: these are no chat completions, or an event is too
  // long, or tells of an error; nothing may be fed any more.  The sentence holds nothing of what came.
  Status feed(std::string_view bytes, std::string& text);
  // Whether the endpoint has said that this was all: what ends before has been cut.
  bool is_whole() const { return is_finished_ || is_over_; }
  bool is_over() const { return is_over_; }  // and nothing follows
  // Why its end is not the text's, as OpenAI's realtime interface says it; null: it is.
  const char* cut_short() const { return cut_short_; }

 private:
  Status take_line(std::string& text);
  Status take_event(std::string& text);
  void take_content(std::string_view content, std::string& text);

  std::string line_;  // as far as it has come
  std::string data_;  // of the event whose end has not come
  std::string held_;  // the beginning of a character
  bool after_return_ = false, has_data_ = false, is_finished_ = false, is_over_ = false;
  const char* cut_short_ = nullptr;
};

}  // namespace syrinx::server::upstream
