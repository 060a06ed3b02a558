// A recognition family for tests: it hears how long a sound lasts, with one option of its own.
#pragma once

#include "engine/recognition/recognition_family.h"

namespace syrinx {

const RecognitionFamily& hourglass_family();

}  // namespace syrinx
