// A Qwen3-TTS checkpoint on disk (spec qwen3-tts.md, section 1.1): a folder as it is published, with config.json,
// generation_config.json, vocab.json, merges.txt, tokenizer_config.json, model.safetensors or the index of its shards,
// and the codec in speech_tokenizer/.  Looks into folders and maps files; load time only.  Immutable once opened.
#pragma once

#include <string>

#include "models/qwen_tts/config.h"
#include "tensor/safetensors_shards.h"

namespace syrinx::qwen_tts {

class Checkpoint {
 public:
  // `path`: the folder, or a file in it.  kNotFound says what is missing; errors of read_config(),
  // read_generation_config(), MappedFile, Safetensors and open_safetensors_shards().  Without generation_config.json
  // its defaults hold.
  static Result<Checkpoint> open(const std::string& path);

  const std::string& folder() const { return folder_; }
  const Config& config() const { return config_; }
  const GenerationConfig& generation() const { return generation_; }
  // Talker, code predictor and speaker encoder: views of the files, which live as long as this.
  const SafetensorsShards& tensors() const { return tensors_; }

  // Whether the folder, or the one of a file in it, looks like such a checkpoint: its config.json names the model.
  static bool recognises(const std::string& path);

 private:
  Checkpoint() = default;

  std::string folder_;
  Config config_;
  GenerationConfig generation_;
  SafetensorsShards tensors_;
};

// The folder of the codec that belongs to a checkpoint's: speech_tokenizer in it or beside it, or the first one beside
// it whose name begins with Qwen3-TTS-Tokenizer; with config.json and model.safetensors.  kNotFound: none of these.
Result<std::string> find_codec(const std::string& folder);

}  // namespace syrinx::qwen_tts
