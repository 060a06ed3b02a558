// American phonemes in the British lexicon's alphabet, for names that stand in one list.
#pragma once

#include "models/g2p/phoneme.h"

namespace syrinx::g2p {

Phonemes to_british(PhonemesView american);

}  // namespace syrinx::g2p
