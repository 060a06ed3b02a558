// A model in several safetensors files, as transformers writes large ones: an index beside them,
// NAME.safetensors.index.json, whose "weight_map" says which tensor lies in which file.
// Source of the facts: transformers' save_pretrained() (modeling_utils.py, "weight_map").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace syrinx {

inline constexpr size_t kMaxSafetensorsIndexBytes = size_t{16} << 20;
inline constexpr size_t kMaxSafetensorsShards = 1000;

// Content of an index.  Files are names without a folder, each once, in the order of their names.
struct SafetensorsIndex {
  struct Entry {
    std::string tensor;
    size_t file = 0;  // index into files
  };
  std::vector<std::string> files;
  std::vector<Entry> entries;  // in the order of their tensors' names
};

// `name` stands in messages.  kDataLoss: malformed, empty, or a file that is no plain name of a .safetensors;
// kLimitExceeded.
Result<SafetensorsIndex> parse_safetensors_index(std::string_view json, const std::string& name);

// The files, and their tensors, which are views of them.
struct SafetensorsShards {
  std::vector<MappedFile> files;
  std::vector<TensorRef> tensors;
};

bool is_safetensors_index(std::string_view path);

// The files beside an index.  Errors of parse_safetensors_index(), MappedFile and Safetensors; kNotFound names the file
// that is missing; kDataLoss when a tensor does not lie where the index says, or lies where it says nothing.
Result<SafetensorsShards> open_safetensors_shards(const std::string& index_path);

}  // namespace syrinx
