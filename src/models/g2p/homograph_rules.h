// Homographs that the words beside them decide, whatever the weights of homographs.h say.
#pragma once

#include <span>
#include <string_view>

#include "text/speech/normalize.h"

namespace syrinx::g2p {

// Name of the reading ("read_past") of the word tokens[i]; empty where no rule is sure.
std::string_view reading_by_rule(std::span<const text::Token> tokens, size_t i);

}  // namespace syrinx::g2p
