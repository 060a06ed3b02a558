// A voice file of any content (the first byte chooses its width) and the text that names voices and their shares.
// Parsers: src/models/kokoro/voice\w*\.cc
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/kokoro/voice.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace syrinx::kokoro;
  const std::span<const uint8_t> bytes(data, size);
  if (!bytes.empty()) {
    const size_t width = 1 + bytes[0] % 4;
    if (const auto voice = Voice::parse(std::as_bytes(bytes.subspan(1)), "fuzz", width)) {
      for (const size_t symbols : {size_t{0}, size_t{1}, size_t{510}, size_t{511}}) {
        if (voice->style(symbols).size() != width) __builtin_trap();
      }
    }
  }
  static_cast<void>(parse_voice(std::string_view(reinterpret_cast<const char*>(data), size)));
  return 0;
}
