#include "models/pocket_tts/voice_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "tensor/safetensors.h"

namespace syrinx::pocket {
namespace {

static_assert(std::endian::native == std::endian::little, "voice files are little-endian and written as they are");

constexpr const char* kPromptName = "audio_prompt";

std::string tensor_name(size_t layer, const char* key) {
  return fmt::format("transformer.layers.{}.self_attn/{}", layer, key);
}

// Rows of floats, checked to be numbers.  `what` is the tensor in the message.
Result<std::vector<float>> read_rows(std::span<const std::byte> bytes, DType dtype, const std::string& file,
                                     const std::string& what) {
  if (dtype != DType::kF32 && dtype != DType::kBF16 && dtype != DType::kF16)
    return fail(Code::kUnsupported, "'{}': '{}' has the type {}; f32, bf16 and f16 are read", file, what,
                dtype_name(dtype));
  std::vector<float> rows = to_f32(bytes, dtype);
  if (!std::all_of(rows.begin(), rows.end(), [](float value) { return std::isfinite(value); }))
    return fail(Code::kDataLoss, "'{}': '{}' holds a value that is not a number; export the voice again", file, what);
  return rows;
}

Status check_positions(size_t positions, const std::string& file, const std::string& what) {
  if (positions == 0) return fail(Code::kDataLoss, "'{}': '{}' has no positions; export the voice again", file, what);
  if (positions > kMaxVoicePositions)
    return fail(Code::kLimitExceeded, "'{}': '{}' has {} positions, at most {} are read; use a shorter recording", file,
                what, positions, kMaxVoicePositions);
  return {};
}

// The one whole number of a tensor such as `offset` or `pad`.
Result<int64_t> read_number(const TensorRef& tensor, const std::string& file) {
  // One of eight bytes at most: nothing is made of a large tensor.
  const auto numbers = to_i64(tensor.bytes.first(std::min(tensor.bytes.size(), sizeof(int64_t))), tensor.dtype);
  if (!numbers || numbers->size() != 1 || tensor.bytes.size() > sizeof(int64_t))
    return fail(Code::kDataLoss, "'{}': '{}' of shape {} and type {} is not one whole number", file, tensor.name,
                dims_text(tensor.dims), dtype_name(tensor.dtype));
  return numbers->front();
}

// Valid positions of a layer: `offset`, or in files of before 4.0 the extent of `current_end`, whose values mean
// nothing.
Result<size_t> read_length(const Safetensors& tensors, size_t layer, const std::string& file) {
  const std::string name = tensor_name(layer, "offset"), older = tensor_name(layer, "current_end");
  if (const TensorRef* const offset = tensors.find(name)) {
    SYRINX_TRY(const int64_t length, read_number(*offset, file));
    if (length < 0) return fail(Code::kDataLoss, "'{}': '{}' is {}, below zero", file, name, length);
    SYRINX_TRY_VOID(check_positions(static_cast<size_t>(length), file, name));
    return static_cast<size_t>(length);
  }
  const TensorRef* const end = tensors.find(older);
  if (end == nullptr)
    return fail(Code::kDataLoss, "'{}' has neither '{}' nor '{}'; it is not a voice of Pocket TTS", file, name, older);
  if (end->dims.size() != 1)
    return fail(Code::kDataLoss, "'{}': '{}' has shape {}, not one extent", file, older, dims_text(end->dims));
  SYRINX_TRY_VOID(check_positions(end->dims[0], file, older));
  return end->dims[0];
}

Result<VoiceLayer> read_layer(const Safetensors& tensors, size_t layer, size_t positions,
                              const nn::TransformerConfig& config, const std::string& file) {
  const std::string name = tensor_name(layer, "cache");
  const TensorRef* const cache = tensors.find(name);
  if (cache == nullptr)
    return fail(Code::kUnsupported, "'{}' has no '{}', but the model has {} layers; use a voice made for this model",
                file, name, config.layers);
  const std::vector<size_t>& dims = cache->dims;
  if (dims.size() != 5 || dims[0] != 2 || dims[1] != 1 || dims[3] != config.key_heads || dims[4] != config.head_size())
    return fail(Code::kUnsupported,
                "'{}': '{}' has shape {}, this model's is [2, 1, T, {}, {}]; use a voice made for it", file, name,
                dims_text(dims), config.key_heads, config.head_size());
  if (positions > dims[2])
    return fail(Code::kDataLoss, "'{}': '{}' has room for {} positions, but {} are said to be in it", file, name,
                dims[2], positions);
  if (const TensorRef* const pad = tensors.find(tensor_name(layer, "pad"))) {
    SYRINX_TRY(const int64_t padding, read_number(*pad, file));
    if (padding != 0)
      return fail(Code::kUnsupported, "'{}': '{}' is {}; a voice of a padded batch is not read, export it alone", file,
                  pad->name, padding);
  }
  // Positions behind the valid ones were never written and may hold anything.
  const size_t valid = positions * config.key_width() * dtype_size(cache->dtype);
  VoiceLayer out;
  SYRINX_TRY(out.keys, read_rows(cache->bytes.first(valid), cache->dtype, file, name));
  SYRINX_TRY(out.values, read_rows(cache->bytes.subspan(cache->bytes.size() / 2, valid), cache->dtype, file, name));
  return out;
}

Result<Voice> read_voice(const Safetensors& tensors, const nn::TransformerConfig& config, const std::string& file) {
  const std::string beyond = tensor_name(config.layers, "cache");
  if (tensors.find(beyond) != nullptr)
    return fail(Code::kUnsupported, "'{}' has '{}', but the model has {} layers; use a voice made for this model", file,
                beyond, config.layers);
  Voice out;
  SYRINX_TRY(out.positions, read_length(tensors, 0, file));
  out.layers.reserve(config.layers);
  for (size_t i = 0; i < config.layers; ++i) {
    SYRINX_TRY(VoiceLayer layer, read_layer(tensors, i, out.positions, config, file));
    SYRINX_TRY(const size_t positions, read_length(tensors, i, file));
    if (positions != out.positions)
      return fail(Code::kDataLoss, "'{}' has {} positions in layer {}, but {} in layer 0; export the voice again", file,
                  positions, i, out.positions);
    out.layers.push_back(std::move(layer));
  }
  return out;
}

Result<VoicePrompt> read_prompt(const TensorRef& tensor, size_t width, const std::string& file) {
  std::span<const size_t> dims = tensor.dims;
  if (dims.size() == 3 && dims[0] == 1) dims = dims.subspan(1);
  if (dims.size() != 2 || dims[1] != width)
    return fail(Code::kUnsupported, "'{}': '{}' has shape {}, this model's is [1, T, {}]; use a voice made for it",
                file, tensor.name, dims_text(tensor.dims), width);
  SYRINX_TRY_VOID(check_positions(dims[0], file, tensor.name));
  VoicePrompt out;
  out.positions = dims[0];
  SYRINX_TRY(out.rows, read_rows(tensor.bytes, tensor.dtype, file, tensor.name));
  return out;
}

}  // namespace

Result<VoiceFile> parse_voice_file(std::span<const std::byte> bytes, const std::string& name,
                                   const FlowLmConfig& config) {
  SYRINX_TRY(const Safetensors tensors, Safetensors::parse(bytes, name));
  if (const TensorRef* const prompt = tensors.find(kPromptName)) {
    if (config.bos_before_voice)
      return fail(Code::kUnsupported,
                  "'{}' is a voice of the older kind ('{}'), made before models had a vector in front of the voice, as "
                  "this one has; use a voice made for it",
                  name, kPromptName);
    SYRINX_TRY(VoicePrompt out, read_prompt(*prompt, config.transformer.width, name));
    return VoiceFile(std::move(out));
  }
  SYRINX_TRY(Voice out, read_voice(tensors, config.transformer, name));
  return VoiceFile(std::move(out));
}

std::string write_voice_file(const Voice& voice, const FlowLmConfig& config) {
  const nn::TransformerConfig& transformer = config.transformer;
  SYRINX_CHECK(voice.layers.size() == transformer.layers);
  const size_t count = voice.positions * transformer.key_width();
  const std::array<int64_t, 1> offset = {static_cast<int64_t>(voice.positions)}, pad = {0};
  std::vector<std::vector<float>> caches;  // [2, 1, T, key_heads, head_size]
  caches.reserve(voice.layers.size());
  std::vector<TensorRef> tensors;
  for (size_t i = 0; i < voice.layers.size(); ++i) {
    const VoiceLayer& layer = voice.layers[i];
    SYRINX_CHECK(layer.keys.size() == count && layer.values.size() == count);
    std::vector<float>& cache = caches.emplace_back(layer.keys);
    cache.insert(cache.end(), layer.values.begin(), layer.values.end());
    tensors.push_back({tensor_name(i, "cache"),
                       DType::kF32,
                       {2, 1, voice.positions, transformer.key_heads, transformer.head_size()},
                       std::as_bytes(std::span(cache))});
    tensors.push_back({tensor_name(i, "offset"), DType::kI64, {1}, std::as_bytes(std::span(offset))});
    tensors.push_back({tensor_name(i, "pad"), DType::kI64, {1}, std::as_bytes(std::span(pad))});
  }
  return write_safetensors(tensors);
}

}  // namespace syrinx::pocket
