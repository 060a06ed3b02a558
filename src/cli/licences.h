// `syrinx --licences`: ours, those of the libraries, and those of each installed model.
#pragma once

#include "base/result.h"

namespace syrinx::cli {

Status print_licences();

}  // namespace syrinx::cli
