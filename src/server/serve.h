// `syrinx serve`: from settings to a server that answers until it is told to end.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "server/settings/settings.h"

namespace syrinx::server {

// Validates the settings and looks for what they name, without loading or listening.
Status check_everything(const Settings& settings);

// Listens, loads the models, and serves until cancel_requested() (base/signals.h); then lets the answers that are under
// way end, at most drain_timeout_s.  `tell` hears one line when the server listens and one when it is ready.
// Errors: those of the settings, of loading, and kUnavailable where the address is taken
// or threads cannot be made.
using Tell = std::function<void(const std::string&)>;
Status serve(const Settings& given, const Tell& tell);

}  // namespace syrinx::server
