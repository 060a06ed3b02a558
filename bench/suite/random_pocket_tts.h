// Pocket TTS checkpoints of random numbers, with the published names, shapes and number format (spec pocket-tts.md,
// sections 1.2 and 1.3; tools/checkpoints/pocket_tts.py draws others of the same kind).  They cost as much time and
// memory as the real ones, which are not ours to give away, and every stage keeps its values near unit size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/pocket_tts/config.h"

namespace syrinx::bench {

// The eight architectures by the names of docs/pocket_tts.md: "english" first.
std::vector<std::string> random_pocket_names();

// The YAML file of one of them at full size.  kInvalidArgument for a name that is none, with those that are.
Result<std::string> random_pocket_config(std::string_view name);

// One tensor: numbers spread evenly around `centre` with this standard deviation.
struct RandomTensor {
  std::string name;
  std::vector<size_t> dims;
  float centre = 0.0f;
  float deviation = 0.0f;
};
// All tensors that a checkpoint of this configuration has.
std::vector<RandomTensor> random_pocket_tensors(const pocket::Config& config);

// Writes config.yaml, tokenizer.json and model.safetensors (BF16; the same bytes each time) into `folder`, which is
// made; a folder that has them already is left alone.  model.safetensors comes last and appears whole or not at all, so
// two processes may do this at once.  Holds one tensor in memory.  Errors as above, and kIo.
Status make_random_pocket(const std::string& folder, std::string_view name);

}  // namespace syrinx::bench
