// Any bytes as a text with marks: the same parts however it arrives, no byte lost or moved.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/speech/marked_text.h"

namespace {

using syrinx::MarkedText;

struct Read {
  std::string text;
  size_t marks = 0, end = 0;
  bool good = true;
};

Read read(std::string_view text, size_t step) {
  MarkedText marked;
  Read read;
  for (bool finished = false;;) {
    std::string part;
    const size_t begin = marked.offset();
    marked.take_text(part);
    read.text += part;
    read.end = marked.offset();
    SYRINX_CHECK(read.end - begin == part.size());
    if (marked.at_mark()) {
      const auto mark = marked.take_mark();
      read.good = mark.has_value();
      if (!read.good) return read;
      SYRINX_CHECK(marked.offset() > read.end && marked.offset() - read.end <= MarkedText::kMaxMarkBytes);
      SYRINX_CHECK(mark->pause_s >= 0 && mark->pause_s <= MarkedText::kMaxPauseS && mark->line >= 1);
      ++read.marks;
    } else if (finished) {
      return read;
    } else {
      marked.feed(text.substr(0, step));
      text.remove_prefix(std::min(step, text.size()));
      finished = text.empty();
      if (finished) marked.finish();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Read whole = read(text, SIZE_MAX), pieces = read(text, 3);
  SYRINX_CHECK(whole.text == pieces.text && whole.marks == pieces.marks && whole.good == pieces.good);
  SYRINX_CHECK(!whole.good || whole.end <= size);
  return 0;
}
