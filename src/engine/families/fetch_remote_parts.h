// Fetching what a model needs from elsewhere before it is loaded.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/speech/remote_files.h"

namespace syrinx {

// Fetches whatever a model and a voice, as the user named them, need from elsewhere, so that loading them afterwards
// asks nobody: for a program that shows what it waits for.
Status fetch_remote_parts(const std::string& model, const std::string& voice, const FetchReport& report);

}  // namespace syrinx
