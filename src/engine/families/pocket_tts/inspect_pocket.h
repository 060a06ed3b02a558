// What `syrinx inspect` says of Pocket TTS: checkpoints, their configurations, voices.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/file_description.h"
#include "tensor/safetensors.h"

namespace syrinx {

// Of such a path.  Errors of find_checkpoint and parse_config.
Result<FileDescription> describe_pocket_config(const std::string& path);
// Adds model and facts where the tensors are weights or a voice of Pocket TTS.
void describe_pocket_tensors(const Safetensors& tensors, FileDescription& out);

}  // namespace syrinx
