#include "engine/families/qwen_tts/qwen_voice.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "tensor/safetensors.h"

namespace syrinx {
namespace {

constexpr const char* kVector = "speaker_embedding";
constexpr const char* kCodes = "ref_code";
constexpr const char* kWords = "ref_words";

template <class T>
std::vector<T> values_of(const TensorRef& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
  return values;
}

tl::unexpected<Error> refuse(const std::string& name, const char* tensor, const std::string& why) {
  return fail(Code::kDataLoss, "'{}': {} {}; export the voice again", name, tensor, why);
}

// Both or none.
Status read_reference(const Safetensors& file, const std::string& name, const qwen_tts::Config& config,
                      QwenVoice& voice) {
  const TensorRef *const codes = file.find(kCodes), *const words = file.find(kWords);
  if (codes == nullptr && words == nullptr) return {};
  if (codes == nullptr || words == nullptr) return refuse(name, codes == nullptr ? kCodes : kWords, "is missing");
  if (codes->dtype != DType::kI32 || codes->dims.size() != 2 || codes->dims[1] != config.codebooks)
    return refuse(name, kCodes, "is no list of frames of this model");
  if (words->dtype != DType::kI32 || words->dims.size() != 1) return refuse(name, kWords, "is no list of tokens");
  if (codes->dims[0] > kMaxQwenVoiceFrames || words->dims[0] > kMaxQwenVoiceWords)
    return fail(Code::kLimitExceeded, "'{}' has {} frames and {} tokens, at most {} and {} are taken", name,
                codes->dims[0], words->dims[0], kMaxQwenVoiceFrames, kMaxQwenVoiceWords);
  voice.codes = values_of<int32_t>(*codes);
  voice.words = values_of<int32_t>(*words);
  for (size_t i = 0; i < voice.codes.size(); ++i) {
    const size_t known = i % config.codebooks == 0 ? config.codes() : config.predictor_codes;
    if (voice.codes[i] < 0 || static_cast<size_t>(voice.codes[i]) >= known)
      return refuse(name, kCodes, fmt::format("holds {}, and the model knows {}", voice.codes[i], known));
  }
  for (const int32_t word : voice.words)
    if (word < 0 || static_cast<size_t>(word) >= config.text_vocabulary)
      return refuse(name, kWords, fmt::format("holds {}, and the model knows {}", word, config.text_vocabulary));
  if (voice.codes.empty() || voice.words.empty()) return refuse(name, kCodes, "or its words are empty");
  return {};
}

}  // namespace

bool is_qwen_voice_file(std::span<const std::byte> content) {
  return content.size() > 8 && content[8] == std::byte{'{'};
}

Result<QwenVoice> parse_qwen_voice(std::span<const std::byte> content, const std::string& name,
                                   const qwen_tts::Config& config) {
  SYRINX_TRY(const Safetensors file, Safetensors::parse(content, name));
  const TensorRef* const vector = file.find(kVector);
  if (vector == nullptr) return refuse(name, kVector, "is missing");
  if (vector->dtype != DType::kF32 || vector->dims.size() != 1) return refuse(name, kVector, "is no list of f32");
  if (vector->dims[0] != config.talker.width)
    return fail(Code::kInvalidArgument, "the voice '{}' has {} numbers, the model {}; it is another model's", name,
                vector->dims[0], config.talker.width);
  QwenVoice voice;
  voice.vector = values_of<float>(*vector);
  if (!std::all_of(voice.vector.begin(), voice.vector.end(), [](float value) { return std::isfinite(value); }))
    return refuse(name, kVector, "holds what is not a number");
  SYRINX_TRY_VOID(read_reference(file, name, config, voice));
  return voice;
}

std::string write_qwen_voice(const QwenVoice& voice, const qwen_tts::Config& config) {
  std::vector<TensorRef> tensors = {
      {kVector, DType::kF32, {voice.vector.size()}, std::as_bytes(std::span(voice.vector))}};
  if (!voice.codes.empty()) {
    tensors.push_back({kCodes,
                       DType::kI32,
                       {voice.codes.size() / config.codebooks, config.codebooks},
                       std::as_bytes(std::span(voice.codes))});
    tensors.push_back({kWords, DType::kI32, {voice.words.size()}, std::as_bytes(std::span(voice.words))});
  }
  return write_safetensors(tensors);
}

}  // namespace syrinx
