// A lexicon of a few dozen words in the published format, for tests of the rules.
#pragma once

#include <string>

namespace syrinx::g2p {
inline std::string tiny_gold() { return SYRINX_TEST_DATA "/g2p/tiny_gold.json"; }
inline std::string tiny_silver() { return SYRINX_TEST_DATA "/g2p/tiny_silver.json"; }
}  // namespace syrinx::g2p
