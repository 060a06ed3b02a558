#include "tensor/gzip.h"
#include "tensor/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  if (syrinx::looks_like_gzip(bytes)) {
    const auto inflated = syrinx::inflate_gzip(bytes, size_t{1} << 20, "fuzz");
    if (inflated) (void)syrinx::TarArchive::parse(inflated->bytes(), "fuzz");
    return 0;
  }
  (void)syrinx::TarArchive::parse(bytes, "fuzz");
  return 0;
}
