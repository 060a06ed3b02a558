// Qwen3-TTS as a family of speaking models.
#pragma once

#include "engine/speech/speech_family.h"

namespace syrinx {

const SpeechFamily& qwen_tts_family();

}  // namespace syrinx
