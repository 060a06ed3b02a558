#include "tensor/ct2_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  const auto file = syrinx::Ct2File::parse(bytes, "fuzz");
  if (!file) return 0;
  for (const syrinx::TensorRef& variable : file->variables()) {
    syrinx::to_f32(variable.bytes, variable.dtype);
    if (file->find(variable.name) == nullptr) __builtin_trap();
  }
  return 0;
}
