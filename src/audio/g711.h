// ITU-T G.711: 16-bit samples as bytes of logarithmic steps, as telephones carry them.  wav.h reads them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syrinx {

std::byte encode_mu_law(int16_t sample);
std::byte encode_a_law(int16_t sample);

}  // namespace syrinx
