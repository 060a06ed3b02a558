// The arithmetic of a recognition family for tests: it hears how long a sound lasts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/result.h"

namespace syrinx::hourglass {

// Samples a second, from safetensors: the tensor `rate`, f32 [1].
Result<float> read_rate(const MappedFile& file);

// "1.5 seconds"; the unit is "seconds" or "minutes".
std::string spell_duration(size_t samples, float rate_hz, std::string_view unit);

}  // namespace syrinx::hourglass
