#include "tensor/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  (void)syrinx::parse_npy(bytes, "fuzz");
  const auto file = syrinx::NpzFile::parse(bytes, "fuzz");
  if (!file) return 0;
  for (const std::string& name : file->names()) (void)file->read(name, size_t{1} << 20);
  return 0;
}
