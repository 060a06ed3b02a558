// Small checkpoints with some values and words of another kind, so that a model says what a test needs.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "tensor/safetensors.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/families/transducer/small_transducers.h"

namespace syrinx {

struct TransducerEdits {
  std::string source = "tdt_mlx";                              // a folder of tests/data/transducer, in bf16
  std::map<std::string, std::map<size_t, float>> values = {};  // of a tensor, by index
  std::pair<std::string, std::string> config = {};             // a text of config.json, and what stands there then
};

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Writes the checkpoint into the folder, over one that is there.
inline void write_edited(const TempFolder& folder, const TransducerEdits& edits) {
  namespace fs = std::filesystem;
  fs::copy(fs::path(SYRINX_TEST_DATA) / "transducer" / edits.source, folder.path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const std::string path = folder.file("model.safetensors"), original = read_all(path);
  std::string bytes = original;
  const auto file = Safetensors::parse(std::as_bytes(std::span(original)), path);
  for (const auto& [name, values] : edits.values) {
    const TensorRef* const tensor = file->find(name);
    const auto first = static_cast<size_t>(reinterpret_cast<const char*>(tensor->bytes.data()) - original.data());
    for (const auto& [index, value] : values) {
      const auto half = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      std::memcpy(&bytes.at(first + index * sizeof half), &half, sizeof half);
    }
  }
  write_text(path, bytes);
  std::string config = read_all(folder.file("config.json"));
  if (const auto& [from, to] = edits.config; !from.empty()) config.replace(config.find(from), from.size(), to);
  write_text(folder.file("config.json"), config);
}

inline Result<std::shared_ptr<Recogniser>> load_edited(const TempFolder& folder, const TransducerEdits& edits,
                                                       RecogniserOptions options = {}) {
  write_edited(folder, edits);
  options.max_streams = 1;
  options.files.name = "m";
  options.files.checkpoint = folder.path();
  options.precision = options.precision.value_or(Precision::kF32);
  options.threads = 1;
  return TransducerRecogniser::load(options);
}

}  // namespace syrinx
