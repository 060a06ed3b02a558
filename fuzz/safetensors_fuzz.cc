#include "tensor/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  const auto file = syrinx::Safetensors::parse(bytes, "fuzz");
  if (!file) return 0;
  for (const syrinx::TensorRef& tensor : file->tensors()) syrinx::to_f32(tensor.bytes, tensor.dtype);
  return 0;
}
