// The text of an answer as its tokens' bytes come: whole characters, and nothing that may belong to a stop text.  Pure;
// one thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syrinx {

class AnswerText {
 public:
  explicit AnswerText(std::vector<std::string> stops = {}) : stops_(std::move(stops)) {}

  // Appends to `text` what has become known by these bytes; true: a stop text has come, and nothing follows.
  bool push(std::string_view bytes, std::string& text);
  // The end: appends what was held back, a character that is not whole as U+FFFD.
  void finish(std::string& text);

 private:
  size_t held_bytes() const;  // of the end of pending_, at least

  const std::vector<std::string> stops_;
  std::string pending_;  // that has not been told
  bool is_over_ = false;
};

}  // namespace syrinx
