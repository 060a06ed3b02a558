// A Whisper checkpoint as one constant object (spec whisper.md, sections 2 and 3).  Tokens, rules and policy are
// elsewhere.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/thread_team.h"
#include "models/whisper/config.h"
#include "models/whisper/weights.h"
#include "tensor/precision.h"

namespace syrinx::whisper {

struct LoadOptions {
  Precision precision = Precision::kF32;  // kInt4 is kUnsupported
  // The folder where packed weights are kept, so that the next start maps them; made if need be.  Empty: nowhere.
  std::string cache_folder = {};
  ThreadTeam* team = nullptr;  // packs them, borrowed; null: the calling thread alone
};

// Immutable; any number of threads, encoders and decoders may share one.
class Model {
 public:
  // A folder with model.bin, model.safetensors or one .pt, or such a file; config.json and generation_config.json are
  // read where they lie beside it.  kNotFound: none of them is there.  Errors of Checkpoint, add_json, check_config and
  // read_weights.
  static Result<std::shared_ptr<const Model>> load(const std::string& path, const LoadOptions& options = {});
  // For programs that make their weights up.
  static std::shared_ptr<const Model> of(Weights weights);

  const Config& config() const { return weights_.config; }
  const Weights& weights() const { return weights_; }
  Precision precision() const { return weights_.precision; }
  const std::string& folder() const { return folder_; }  // of the file, where the vocabulary lies
  const std::string& path() const { return path_; }      // of the file

 private:
  Model() = default;
  Status read(const Checkpoint& checkpoint, const LoadOptions& options);

  std::string folder_, path_;
  Weights weights_;
};

// In which type caches of keys and values are kept under a precision: kF32, else kBF16.
constexpr DType cache_type(Precision precision) { return precision == Precision::kF32 ? DType::kF32 : DType::kBF16; }

}  // namespace syrinx::whisper
