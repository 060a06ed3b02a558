// A language model's checkpoint as one constant object: configuration and packed weights.
//
// A checkpoint is a GGUF file, or a folder as transformers writes it: config.json, and model.safetensors or its index.
#pragma once

#include <memory>
#include <string>

#include "models/llama/weights.h"

namespace syrinx::llama {

// The file to begin with: `path` itself, or in a folder its only .gguf, else model.safetensors or its index.
// kNotFound; kInvalidArgument: several .gguf, or a file of another kind.
Result<std::string> find_checkpoint(const std::string& path);

struct LoadOptions {
  Precision precision = Precision::kF32;
  std::string cache_folder = {};  // where packed weights are kept for the next start; empty: nowhere
  ThreadTeam* team = nullptr;     // packs the weights, borrowed; null: the calling thread alone
};

class Model {
 public:
  // Errors of find_checkpoint(), GgufFile, Safetensors, open_safetensors_shards(), read_config() and read_weights();
  // kNotFound: no config.json beside the weights.
  static Result<std::shared_ptr<const Model>> load(const std::string& path, const LoadOptions& options = {});

  const Config& config() const { return weights_->config; }
  std::shared_ptr<const Weights> weights() const { return weights_; }
  const std::string& path() const { return path_; }

 private:
  Model() = default;
  Status load_gguf(const LoadOptions& options);
  Status load_folder(const LoadOptions& options);

  std::string path_;
  std::shared_ptr<const Weights> weights_;
};

}  // namespace syrinx::llama
