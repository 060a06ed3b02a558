// Names of models and voices that clients of OpenAI's interface give, whatever model answers them: from
// catalogue/foreign_names.txt, built into the binary.
#pragma once

#include <span>
#include <string_view>

namespace syrinx {

// `use` is the first word of a line: "speech", "transcription", "chat", "without-turns", "voice".  Thread-safe.
std::span<const std::string_view> foreign_names(std::string_view use);

}  // namespace syrinx
