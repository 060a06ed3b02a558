// Whisper as a family of recognising models.
#pragma once

#include "engine/recognition/recognition_family.h"

namespace syrinx {

const RecognitionFamily& whisper_family();

}  // namespace syrinx
