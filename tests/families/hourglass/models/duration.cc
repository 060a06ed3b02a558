#include "models/hourglass/duration.h"

#include "tensor/safetensors.h"

namespace syrinx::hourglass {

Result<float> read_rate(const MappedFile& file) {
  SYRINX_TRY(const Safetensors tensors, Safetensors::parse(file.bytes(), file.path()));
  const TensorRef* const rate = tensors.find("rate");
  if (rate == nullptr || rate->dtype != DType::kF32 || element_count(rate->dims) != 1)
    return fail(Code::kDataLoss, "'{}' has no tensor 'rate' with one number", file.path());
  const float hz = to_f32(rate->bytes, rate->dtype)[0];
  if (hz >= 1) return hz;
  return fail(Code::kDataLoss, "'{}': the rate is {}; give at least 1", file.path(), hz);
}

std::string spell_duration(size_t samples, float rate_hz, std::string_view unit) {
  const double seconds = static_cast<double>(samples) / static_cast<double>(rate_hz);
  return fmt::format("{:.1f} {}", unit == "minutes" ? seconds / 60 : seconds, unit);
}

}  // namespace syrinx::hourglass
