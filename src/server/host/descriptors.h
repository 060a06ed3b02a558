// How many files and connections the process may have open at once: RLIMIT_NOFILE, whose soft limit is 1024 on most
// machines.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace syrinx::server {

// Raises the soft limit to `wanted` where it is lower, as far as the hard one lets.  The limit that then holds.
size_t raise_descriptor_limit(size_t wanted);

// Room for `connections` clients, and for what the server opens besides: its models' files, and for each session a
// connection to the language model.  kLimitExceeded where the hard limit is too low: then whoever comes once it is
// reached waits until somebody has left.
Status make_room_for(size_t connections, size_t sessions);

}  // namespace syrinx::server
