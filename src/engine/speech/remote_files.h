// Places beyond this disk where a model, a voice, or a file that a configuration names may be:
// hf://owner/repo/file@revision and http(s):// addresses.  What a cache or our store has is taken from there, else
// fetched (checkpoint_source.h).  Ctrl-C ends a fetch (signals.h) with kCancelled.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/pull_event.h"

namespace syrinx {

bool is_remote(std::string_view place);
// The last part of its path; empty where it cannot be read.
std::string remote_file_name(const std::string& place);

// What is fetched is told to this; it may be empty.
using FetchReport = std::function<void(const PullEvent&)>;

// The local file; of a configuration (.yaml, .yml) at most 1 MiB is fetched.  Errors of CheckpointSource::get.
Result<std::string> fetch(const std::string& place);

// For the places of one configuration; nothing is opened before it is asked.  Once one has been refused (gated weights,
// no network), all further ones are, with the same sentence: a reader that would go on to weights of another kind must
// not do so behind the user's back.  One thread.
std::function<Result<std::string>(const std::string& place)> remote_locator(FetchReport report = {});

}  // namespace syrinx
