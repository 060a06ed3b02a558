// The configuration of a checkpoint from the maker's YAML (model_config.yaml) or the same tree as JSON (spec
// transducer-asr.md, section 1.2; defaults are those of the maker's classes), or from transformers' config.json
// (transformers_config.h).
//
// Keys that only training reads are passed over.  Every number has a range, and what the stages could not be built
// from is refused; a class or a mode that we cannot run is named.  Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "models/transducer/config.h"

namespace syrinx::transducer {

// A file's text, and the name that stands for it in messages.
struct ConfigText {
  std::string_view text = {};
  std::string name = {};
};

// At most 4 MiB of text.  `processor`: transformers' processor_config.json or preprocessor_config.json, empty where
// there is none; the maker's own tree needs none.  `name` stands in messages, which name the key and its line.
// kDataLoss: malformed, a missing key, a wrong type, dimensions that contradict each other; kLimitExceeded: a number
// out of its range; kUnsupported. DecoderConfig::ctc is left false for checkpoints that have another head: only the
// tensors say (section 1.2).
Result<Config> parse_config(std::string_view text, const std::string& name, const ConfigText& processor = {});

}  // namespace syrinx::transducer
