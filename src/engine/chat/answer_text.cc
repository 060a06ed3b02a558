#include "engine/chat/answer_text.h"

#include <algorithm>

#include "text/tokens/byte_bpe.h"
#include "text/unicode.h"

namespace syrinx {

// The longest end of the text that begins a stop text.
size_t AnswerText::held_bytes() const {
  size_t held = 0;
  for (const std::string& stop : stops_)
    for (size_t size = std::min(stop.size() - 1, pending_.size()); size > held; --size)
      if (pending_.ends_with(std::string_view(stop).substr(0, size))) held = size;
  return held;
}

bool AnswerText::push(std::string_view bytes, std::string& text) {
  if (is_over_) return true;
  pending_ += bytes;
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, pending_.find(stop));
  is_over_ = end != std::string::npos;
  if (!is_over_) {
    end = pending_.size() - held_bytes();
    end -= text::unfinished_tail(std::string_view(pending_).substr(0, end));
  }
  text += text::replace_malformed(std::string_view(pending_).substr(0, end));
  pending_.erase(0, end);
  return is_over_;
}

void AnswerText::finish(std::string& text) {
  if (!is_over_) text += text::replace_malformed(pending_);
  pending_.clear();
  is_over_ = true;
}

}  // namespace syrinx
