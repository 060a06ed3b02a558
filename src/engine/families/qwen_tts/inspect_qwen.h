// `syrinx inspect` for Qwen3-TTS: checkpoints, their codecs, and the weights of both.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/file_description.h"
#include "tensor/safetensors.h"

namespace syrinx {

// Describes a folder with such a checkpoint or codec, or its config.json.  False: it is neither.  Errors of the readers
// of configurations.
Result<bool> describe_qwen_config(const std::string& path, FileDescription& out);
// Adds model and facts where the tensors are weights of a talker, of a speaker encoder or of a codec.
void describe_qwen_tensors(const Safetensors& tensors, FileDescription& out);

}  // namespace syrinx
