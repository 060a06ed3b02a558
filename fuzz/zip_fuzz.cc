#include "tensor/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  const auto archive = syrinx::ZipArchive::parse(bytes, "fuzz");
  if (!archive) return 0;
  for (const syrinx::ZipMember& member : archive->members()) (void)archive->extract(member, size_t{1} << 20);
  return 0;
}
