#include "tensor/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  const auto file = syrinx::TorchFile::parse(bytes, "fuzz");
  if (!file) return 0;
  for (const syrinx::TorchTensor& tensor : file->tensors()) syrinx::read_f32(tensor);
  return 0;
}
