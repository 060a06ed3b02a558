// The models that are taken where none is named.
#pragma once

namespace syrinx {

inline constexpr const char* kDefaultModel = "kokoro";
inline constexpr const char* kDefaultRecogniser = "whisper-base";
inline constexpr const char* kDefaultChatModel = "smollm2";

}  // namespace syrinx
