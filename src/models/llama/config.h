// The dimensions of a language model of Llama's kind: RMS norms, rotary embeddings, grouped keys and values, SwiGLU
// (Touvron et al. 2023: "LLaMA: open and efficient foundation language models"; transformers' modeling_llama.py,
// modeling_qwen2.py, modeling_qwen3.py), and how GGUF and transformers write them down.  Load time only; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nn/decoder_config.h"
#include "tensor/gguf.h"

namespace syrinx::llama {

enum class Architecture : uint8_t {
  kLlama,
  kQwen2,  // biases on queries, keys and values
  kQwen3,  // a norm on each query and key head
};
inline constexpr const char* kArchitectureNames = "llama, qwen2 or qwen3";  // in messages

struct Config {
  Architecture architecture = Architecture::kLlama;
  size_t width = 0;  // D
  size_t layers = 0;
  size_t heads = 0;       // H
  size_t key_heads = 0;   // G
  size_t head_size = 0;   // K
  size_t hidden = 0;      // F
  size_t vocabulary = 0;  // V
  size_t context = 0;     // positions that the model was trained for
  float epsilon = 1e-6f;
  float period = 10000.0f;
  bool tied_head = false;       // the head is the embedding
  bool attention_bias = false;  // on queries, keys and values, with Llama on the output too
  // A rotary frequency is divided by its factor; [K / 2] or none.
  std::vector<float> frequency_factors;

  bool head_norm() const { return architecture == Architecture::kQwen3; }
};

// `name` stands in messages of all.  kUnsupported: another architecture, experts, a scaling of positions that is not
// known, a window.  kDataLoss: what is missing or contradicts itself.  kLimitExceeded.
// The entries of a GGUF file; its tensors are looked at for what only they tell.
Result<Config> read_config(const GgufFile& file, const std::string& name);
// transformers' config.json.  `tied_head` may be corrected by what the weights hold.
Result<Config> read_config(std::string_view json, const std::string& name);

nn::DecoderConfig decoder_shape(const Config& config, DType cache);

}  // namespace syrinx::llama
