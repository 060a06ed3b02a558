#include "server/upstream/chat_stream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode.h"

namespace {

struct Read {
  std::string text = {};
  std::string cut_short = {};
  bool is_good = true, is_whole = false;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view bytes, size_t step) {
  syrinx::server::upstream::ChatStream stream;
  Read read;
  for (size_t at = 0; at < bytes.size() && read.is_good; at += step) {
    const auto fed = stream.feed(bytes.substr(at, step), read.text);
    read.is_good = fed.has_value();
    if (!fed && fed.error().message.empty()) __builtin_trap();
    if (syrinx::text::find_invalid(read.text)) __builtin_trap();
  }
  read.is_whole = stream.is_whole();
  if (stream.cut_short() != nullptr) read.cut_short = stream.cut_short();
  return read;
}

}  // namespace

// The same, however the bytes are cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Read whole = read(bytes, std::max<size_t>(size, 1));
  if (!(read(bytes, 1) == whole) || !(read(bytes, 7) == whole)) __builtin_trap();
  return 0;
}
