// Places beyond this disk where a model, a voice, or a file that a configuration names may be:
// hf://owner/repo/file@revision and http(s):// addresses.  What a cache or our store has is taken from there, else
// fetched (checkpoint_source.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace syrinx {

bool is_remote(std::string_view place);
// The local file.  Errors of CheckpointSource::get; kCancelled after Ctrl-C (signals.h).
Result<std::string> fetch(const std::string& place);
// For the places of one configuration (model_resolve.h); nothing is opened before it is asked.  One thread.
std::function<Result<std::string>(const std::string& place)> remote_locator();

}  // namespace syrinx
