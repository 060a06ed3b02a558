// The files of the English front end.
#pragma once

#include <string>

#include "models/g2p/english.h"

namespace syrinx {

// The front end's files in a lexicon folder, for a voice of either side of the ocean.
g2p::G2pFiles lexicon_files(const std::string& lexicon_folder, bool british);

}  // namespace syrinx
