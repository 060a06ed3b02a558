// A family for tests: it hums, at 16 kHz, with one option of its own.
#pragma once

#include "engine/speech/speech_family.h"

namespace syrinx {

const SpeechFamily& hum_family();

}  // namespace syrinx
