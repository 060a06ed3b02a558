// A checkpoint in any of the forms that it is published in (spec transducer-asr.md, sections 1.3 and 1.4):
//
//   NAME.nemo                 a tar, plain or in gzip, of model_config.yaml, model_weights.ckpt and the tokenizer
//   a folder                  with one NAME.nemo, the members of one, or config.json and model.safetensors or its index
//   NAME.safetensors, .ckpt   with config.json or model_config.yaml beside it
//   NAME.safetensors.index.json   the same, of several files
//
// Whatever the form, tensors have the maker's names and are row-major: those of parakeet-mlx are turned round, those of
// transformers renamed.  Values stay where the file has them, but for tensors that are not row-major there.
//
// Owns the mapping of the files.  Immutable, thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "models/transducer/config.h"
#include "models/transducer/vocabulary.h"
#include "tensor/dtype.h"
#include "tensor/gzip.h"

namespace syrinx::transducer {

class Checkpoint {
 public:
  // kNotFound, kIo, kDataLoss, kUnsupported (a class, a mode or a container that we cannot run), kLimitExceeded.
  static Result<Checkpoint> open(const std::string& path);

  const std::string& name() const { return name_; }  // of the file with the weights, or of their index
  const Config& config() const { return config_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::span<const TensorRef> tensors() const { return tensors_; }
  const TensorRef* find(std::string_view name) const;
  // Hashes of the files with the weights and of the configuration, for caches of what is made from both; the first is
  // remembered in `cache_folder`, which may be empty.
  std::string key(const std::string& cache_folder) const;
  // Releases the pages of the file that have been read.
  void release() const;

 private:
  Checkpoint() = default;
  Status read_tensors(std::span<const std::byte> bytes);
  Status read_torch(std::span<const std::byte> bytes);
  void take_all(std::span<const TensorRef> tensors);
  void take(std::string name, DType dtype, std::vector<size_t> dims, std::span<const std::byte> bytes);
  void keep(std::string name, std::vector<size_t> dims, std::vector<float> values);
  void take_mlx(const TensorRef& tensor);

  std::string name_;
  std::vector<MappedFile> files_;
  Inflated inflated_;
  Config config_;
  std::string config_digest_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<TensorRef> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::vector<std::unique_ptr<std::vector<float>>> turned_;  // tensors that are not row-major in the file
};

}  // namespace syrinx::transducer
