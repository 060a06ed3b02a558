// The files of a checkpoint that lies elsewhere, of which only config.json has been fetched
// (hf://Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice/config.json): what lies beside it there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace syrinx {

// `config`: its local path; `model`: where it came from.  None where that is no such place, or all is here.  Asks for
// the index of the weights where they are not here, which is fetched with it.
Result<std::vector<std::string>> qwen_remote_parts(const std::string& config, const std::string& model);
// Fetches them into the folder of the configuration.  Errors of fetch().
Status fetch_qwen_parts(const std::string& config, const std::string& model);

}  // namespace syrinx
