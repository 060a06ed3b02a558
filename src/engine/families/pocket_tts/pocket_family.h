// Pocket TTS as a family of speaking models.
#pragma once

#include "engine/speech/speech_family.h"

namespace syrinx {

const SpeechFamily& pocket_tts_family();

}  // namespace syrinx
