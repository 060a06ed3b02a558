// Any text with what may be marks: the same comes out however it is cut, no longer than it, and still UTF-8.
#include "text/speech/markdown.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "text/unicode.h"

namespace {

std::string spoken(std::string_view text, size_t step) {
  syrinx::text::MarkdownReader reader;
  std::string out;
  for (size_t at = 0; at < text.size(); at += step) reader.push(text.substr(at, step), out);
  reader.finish(out);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = spoken(text, std::max<size_t>(size, 1));
  SYRINX_CHECK(whole.size() <= text.size());
  SYRINX_CHECK(spoken(text, 1) == whole && spoken(text, 7) == whole);
  if (!syrinx::text::find_invalid(text)) SYRINX_CHECK(!syrinx::text::find_invalid(whole));
  return 0;
}
