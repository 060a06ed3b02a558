#include "models/hum/voice.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "tensor/safetensors.h"

namespace syrinx::hum {
namespace {

constexpr float kMinHz = 20, kMaxHz = 2000;

float frequency_of(const Voice& voice, char letter, float pitch) {
  const char lower = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  if (lower < 'a' || lower > 'z') return 0;
  return voice.letter_a_hz * pitch * std::exp2(static_cast<float>(lower - 'a') / 12);
}

}  // namespace

Result<Voices> read_voices(const MappedFile& file) {
  SYRINX_TRY(const Safetensors tensors, Safetensors::parse(file.bytes(), file.path()));
  Voices voices;
  for (const TensorRef& tensor : tensors.tensors()) {
    const size_t count = element_count(tensor.dims).value_or(0);
    if (tensor.dtype != DType::kF32 || count < 2 || count > 1 + kMaxOvertones ||
        !all_finite(tensor.bytes, tensor.dtype))
      return fail(Code::kDataLoss, "'{}': the voice '{}' is no list of 2 to {} numbers", file.path(), tensor.name,
                  1 + kMaxOvertones);
    const std::vector<float> values = to_f32(tensor.bytes, tensor.dtype);
    if (values[0] < kMinHz || values[0] > kMaxHz)
      return fail(Code::kDataLoss, "'{}': the voice '{}' hums at {} Hz; {} to {} can be heard", file.path(),
                  tensor.name, values[0], kMinHz, kMaxHz);
    voices[tensor.name] = {.letter_a_hz = values[0], .overtones = {values.begin() + 1, values.end()}};
  }
  if (voices.empty()) return fail(Code::kDataLoss, "'{}' holds no voice", file.path());
  return voices;
}

void hum(const Voice& voice, std::string_view text, float pitch, std::vector<float>& samples) {
  for (const char letter : text) {
    const float hz = frequency_of(voice, letter, pitch);
    for (size_t i = 0; i < kSamplesPerCharacter; ++i) {
      const auto seconds = static_cast<float>(i) / kSampleRateHz;
      float sample = 0;
      for (size_t k = 0; hz > 0 && k < voice.overtones.size(); ++k)
        sample +=
            voice.overtones[k] * std::sin(2 * std::numbers::pi_v<float> * hz * static_cast<float>(k + 1) * seconds);
      samples.push_back(sample);
    }
  }
}

}  // namespace syrinx::hum
