#include "models/whisper/checkpoint.h"

#include <cstring>

#include "tensor/ct2_file.h"
#include "tensor/safetensors.h"
#include "tensor/safetensors_shards.h"
#include "tensor/torch_file.h"

namespace syrinx::whisper {
namespace {

constexpr uint8_t kZip[] = {'P', 'K', 3, 4};
constexpr size_t kJsonAt = 8;  // safetensors: a header's length, then JSON

bool begins_with_zip(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof kZip && std::memcmp(bytes.data(), kZip, sizeof kZip) == 0;
}
bool holds_json(std::span<const std::byte> bytes) {
  return bytes.size() > kJsonAt && static_cast<char>(bytes[kJsonAt]) == '{';
}

LinearName ct2_linear(const std::string& name) { return {name + "/weight", name + "/bias"}; }
NormName ct2_norm(const std::string& name) { return {name + "/gamma", name + "/beta"}; }
LinearName torch_linear(const std::string& name) { return {name + ".weight", name + ".bias"}; }
LinearName torch_without_bias(const std::string& name) { return {name + ".weight", ""}; }
NormName torch_norm(const std::string& name) { return {name + ".weight", name + ".bias"}; }

LayerNames ct2_layer(const std::string& layer) {
  const std::string self = layer + "/self_attention", cross = layer + "/attention";
  return {.self = {.norm = ct2_norm(self + "/layer_norm"),
                   .query = {},
                   .key_value = {ct2_linear(self + "/linear_0")},
                   .out = ct2_linear(self + "/linear_1")},
          .cross = {.norm = ct2_norm(cross + "/layer_norm"),
                    .query = {ct2_linear(cross + "/linear_0")},
                    .key_value = {ct2_linear(cross + "/linear_1")},
                    .out = ct2_linear(cross + "/linear_2")},
          .ffn_norm = ct2_norm(layer + "/ffn/layer_norm"),
          .ffn1 = ct2_linear(layer + "/ffn/linear_0"),
          .ffn2 = ct2_linear(layer + "/ffn/linear_1")};
}

LayerNames transformers_layer(const std::string& layer) {
  const std::string self = layer + ".self_attn", cross = layer + ".encoder_attn";
  return {.self = {.norm = torch_norm(self + "_layer_norm"),
                   .query = {},
                   .key_value = {torch_linear(self + ".q_proj"), torch_without_bias(self + ".k_proj"),
                                 torch_linear(self + ".v_proj")},
                   .out = torch_linear(self + ".out_proj")},
          .cross = {.norm = torch_norm(cross + "_layer_norm"),
                    .query = {torch_linear(cross + ".q_proj")},
                    .key_value = {torch_without_bias(cross + ".k_proj"), torch_linear(cross + ".v_proj")},
                    .out = torch_linear(cross + ".out_proj")},
          .ffn_norm = torch_norm(layer + ".final_layer_norm"),
          .ffn1 = torch_linear(layer + ".fc1"),
          .ffn2 = torch_linear(layer + ".fc2")};
}

LayerNames openai_layer(const std::string& layer) {
  const std::string self = layer + ".attn", cross = layer + ".cross_attn";
  return {.self = {.norm = torch_norm(self + "_ln"),
                   .query = {},
                   .key_value = {torch_linear(self + ".query"), torch_without_bias(self + ".key"),
                                 torch_linear(self + ".value")},
                   .out = torch_linear(self + ".out")},
          .cross = {.norm = torch_norm(cross + "_ln"),
                    .query = {torch_linear(cross + ".query")},
                    .key_value = {torch_without_bias(cross + ".key"), torch_linear(cross + ".value")},
                    .out = torch_linear(cross + ".out")},
          .ffn_norm = torch_norm(layer + ".mlp_ln"),
          .ffn1 = torch_linear(layer + ".mlp.0"),
          .ffn2 = torch_linear(layer + ".mlp.2")};
}

// Transformers' prefix stands in saved models of the whole, not in those without the language model's head.
constexpr const char* kTransformers = "model.";
constexpr const char* kOpenAi = "model_state_dict.";

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  if (!is_safetensors_index(path)) {
    SYRINX_TRY(MappedFile file, MappedFile::open(path));
    return read(std::move(file));
  }
  SYRINX_TRY(SafetensorsShards shards, open_safetensors_shards(path));
  Checkpoint checkpoint;
  checkpoint.name_ = path;
  checkpoint.files_ = std::move(shards.files);
  checkpoint.take(shards.tensors);
  return checkpoint;
}

Result<Checkpoint> Checkpoint::read(MappedFile file) {
  Checkpoint checkpoint;
  checkpoint.name_ = file.path();
  checkpoint.files_.push_back(std::move(file));
  const auto bytes = checkpoint.file().bytes();
  if (begins_with_zip(bytes)) {
    SYRINX_TRY_VOID(checkpoint.read_torch());
  } else if (holds_json(bytes)) {
    SYRINX_TRY(const Safetensors parsed, Safetensors::parse(bytes, checkpoint.file().path()));
    checkpoint.take(parsed.tensors());
  } else {
    SYRINX_TRY_VOID(checkpoint.read_ct2());
  }
  return checkpoint;
}

Status Checkpoint::read_ct2() {
  layout_ = Layout::kCTranslate2;
  SYRINX_TRY(const Ct2File parsed, Ct2File::parse(file().bytes(), file().path()));
  if (parsed.specification() != "WhisperSpec")
    return fail(Code::kUnsupported, "'{}' holds a model of CTranslate2 of the kind '{}', not WhisperSpec",
                file().path(), parsed.specification());
  for (const TensorRef& variable : parsed.variables()) tensors_.emplace(variable.name, variable);
  const ModelNames known = names();
  if (const TensorRef* const embedding = parsed.find(known.embedding); embedding != nullptr)
    tensors_.emplace(known.embedding, *embedding);  // where it is the alias of the projection
  struct Setting {
    const char* name;
    int64_t value;  // of every Whisper, and the default
  };
  constexpr int64_t kGelu = 3;
  for (const Setting& setting : {Setting{"decoder/activation", kGelu},
                                 {"decoder/pre_norm", 1},
                                 {"decoder/alibi", 0},
                                 {"decoder/scale_embeddings", 0}}) {
    if (const int64_t value = number(setting.name, setting.value); value != setting.value)
      return fail(Code::kUnsupported, "'{}' has {} = {}, Whisper has {}", file().path(), setting.name, value,
                  setting.value);
  }
  return {};
}

void Checkpoint::take(std::span<const TensorRef> tensors) {
  layout_ = Layout::kTransformers;
  for (const TensorRef& tensor : tensors) {
    const bool bare = tensor.name.starts_with("encoder.") || tensor.name.starts_with("decoder.");
    tensors_.emplace(bare ? kTransformers + tensor.name : tensor.name, tensor);
  }
}

Status Checkpoint::read_torch() {
  layout_ = Layout::kOpenAi;
  SYRINX_TRY(const TorchFile parsed, TorchFile::parse(file().bytes(), file().path()));
  for (const TorchTensor& tensor : parsed.tensors()) {
    if (!tensor.contiguous)
      return fail(Code::kUnsupported, "'{}': tensor '{}' is not stored row by row; save the model again", file().path(),
                  tensor.name);
    tensors_.emplace(tensor.name, TensorRef{tensor.name, tensor.dtype, tensor.dims, tensor.storage});
  }
  return {};
}

const TensorRef* Checkpoint::find(std::string_view name) const {
  const auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

int64_t Checkpoint::number(std::string_view name, int64_t otherwise) const {
  const TensorRef* const tensor = find(name);
  if (tensor == nullptr || tensor->bytes.size() != dtype_size(tensor->dtype)) return otherwise;
  const auto values = to_i64(tensor->bytes, tensor->dtype);
  return values && values->size() == 1 ? values->front() : otherwise;
}

ModelNames Checkpoint::names() const {
  switch (layout_) {
    case Layout::kCTranslate2:
      return {.conv1 = ct2_linear("encoder/conv1"),
              .conv2 = ct2_linear("encoder/conv2"),
              .encoder_positions = "encoder/position_encodings/encodings",
              .decoder_positions = "decoder/position_encodings/encodings",
              .embedding = "decoder/embeddings/weight",
              .encoder_norm = ct2_norm("encoder/layer_norm"),
              .decoder_norm = ct2_norm("decoder/layer_norm")};
    case Layout::kTransformers: {
      const std::string encoder = std::string(kTransformers) + "encoder.";
      const std::string decoder = std::string(kTransformers) + "decoder.";
      return {.conv1 = torch_linear(encoder + "conv1"),
              .conv2 = torch_linear(encoder + "conv2"),
              .encoder_positions = encoder + "embed_positions.weight",
              .decoder_positions = decoder + "embed_positions.weight",
              .embedding = decoder + "embed_tokens.weight",
              .encoder_norm = torch_norm(encoder + "layer_norm"),
              .decoder_norm = torch_norm(decoder + "layer_norm")};
    }
    case Layout::kOpenAi: break;
  }
  const std::string encoder = std::string(kOpenAi) + "encoder.", decoder = std::string(kOpenAi) + "decoder.";
  return {.conv1 = torch_linear(encoder + "conv1"),
          .conv2 = torch_linear(encoder + "conv2"),
          .encoder_positions = encoder + "positional_embedding",
          .decoder_positions = decoder + "positional_embedding",
          .embedding = decoder + "token_embedding.weight",
          .encoder_norm = torch_norm(encoder + "ln_post"),
          .decoder_norm = torch_norm(decoder + "ln")};
}

LayerNames Checkpoint::layer(bool decoder, size_t index) const {
  const char* const side = decoder ? "decoder" : "encoder";
  switch (layout_) {
    case Layout::kCTranslate2: return ct2_layer(fmt::format("{}/layer_{}", side, index));
    case Layout::kTransformers: return transformers_layer(fmt::format("{}{}.layers.{}", kTransformers, side, index));
    case Layout::kOpenAi: break;
  }
  return openai_layer(fmt::format("{}{}.blocks.{}", kOpenAi, side, index));
}

}  // namespace syrinx::whisper
