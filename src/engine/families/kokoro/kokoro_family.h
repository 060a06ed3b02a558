// Kokoro as a family of speaking models.
#pragma once

#include "engine/speech/speech_family.h"

namespace syrinx {

inline constexpr const char* kDefaultVoice = "af_heart";

const SpeechFamily& kokoro_family();

}  // namespace syrinx
