// The result of describe_file() (inspect.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace syrinx {

struct TensorDescription {
  std::string name;
  std::string dtype;  // "f32", "i8", "text", ...
  std::vector<size_t> dims;
  uint64_t size_bytes = 0;
};

struct FileDescription {
  std::string path;
  std::string kind;   // safetensors, gguf, onnx, torch, npz, npy, voice, wav, yaml, ctranslate2, ggml, nemo
  std::string model;  // the kind of the family that the file belongs to, or "silero-vad"
  uint64_t size_bytes = 0;
  std::vector<std::pair<std::string, std::string>> facts;  // what else there is to say: nodes, producer, rate, ...
  std::vector<TensorDescription> tensors;                  // as the file names them
  std::vector<TensorDescription> weights;                  // of a known model, under its maker's names
};

// A file that a family may recognise.
struct InspectedFile {
  const std::string& path;
  std::span<const std::byte> bytes;  // none of a folder
  bool is_folder = false;
};

}  // namespace syrinx
