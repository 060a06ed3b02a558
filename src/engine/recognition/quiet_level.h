// How much a very quiet recording is to be raised before its speech is looked for.
#pragma once

#include <span>

namespace syrinx {

// 1 for a recording of which 0.2 s or more reach -35 dB of full scale, or of which less than that reaches -75 dB: it
// has a level that voice activity knows, or nothing in it.  Else the factor by which all but the loudest 0.15 s stay
// within -10 dB.  Mono, 16 kHz.  Pure.
float quiet_gain(std::span<const float> recording);

}  // namespace syrinx
