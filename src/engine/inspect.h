// What is in a file: for `syrinx inspect FILE`.  Reads directories and headers, not the values of large tensors, and
// executes nothing.  The kind is told by the content, not by the name, but for the configurations of Pocket TTS (.yaml,
// or the folder of one).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace syrinx {

struct TensorDescription {
  std::string name;
  std::string dtype;  // "f32", "i8", "text", ...
  std::vector<size_t> dims;
  uint64_t size_bytes = 0;
};

struct FileDescription {
  std::string path;
  std::string kind;   // safetensors, onnx, torch, npz, npy, voice, wav, yaml, ctranslate2, ggml, nemo
  std::string model;  // "kokoro", "pocket-tts", "whisper", "transducer" or "silero-vad": whose part the file is
  uint64_t size_bytes = 0;
  std::vector<std::pair<std::string, std::string>> facts;  // what else there is to say: nodes, producer, rate, ...
  std::vector<TensorDescription> tensors;                  // as the file names them
  std::vector<TensorDescription> weights;                  // of a known model, under its maker's names
};

// kNotFound, kIo, kUnsupported (no kind that we know), or the reader's own error.
Result<FileDescription> describe_file(const std::string& path);

// One object: path, kind, model, size_bytes, facts as members of "facts", and the two lists.
Json to_json(const FileDescription& description);
// Lines for people, the last without a newline.
std::string to_text(const FileDescription& description);

}  // namespace syrinx
