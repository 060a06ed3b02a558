// The configuration of a checkpoint from its YAML file (spec pocket-tts.md, section 1.2; the maker's
// pocket_tts/utils/config.py, whose schema and defaults these are, and pocket_tts/models/mimi.py, which says what must
// agree with what).
//
// Read leniently where the maker's reader is strict: a key that it does not know is an error there and a warning here.
// Read strictly where the maker's reader fails late or never: every number has a range, and dimensions that the stages
// could not be built from (mimi::check) are refused.  Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/pocket_tts/config.h"

namespace syrinx::pocket {

struct ConfigFile {
  Config config;
  std::vector<std::string> warnings;  // one sentence a key that nothing reads, for the first twenty of them
};

// At most 64 KiB of text.  `name` stands in messages, which name the key and its line.  kDataLoss: malformed YAML, a
// missing key, a wrong type, dimensions that contradict each other; kLimitExceeded: a number out of its range;
// kUnsupported: another architecture, or a kind of stage that we cannot run.
Result<ConfigFile> parse_config(std::string_view text, const std::string& name);

}  // namespace syrinx::pocket
