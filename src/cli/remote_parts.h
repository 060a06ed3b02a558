// Fetching what a model or a voice needs from elsewhere, in sight of the user.
#pragma once

#include <string>

#include "base/result.h"

namespace syrinx::cli {

// Fetches hf:// and http(s):// references in `model`, in its configuration and in `voice` that are not here yet; with a
// bar and lines on standard error unless `quiet`.  Ctrl-C ends it, and the next time goes on.
Status fetch_in_sight(const std::string& model, const std::string& voice, bool quiet);

}  // namespace syrinx::cli
