#include "tensor/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span<const uint8_t>(data, size));
  (void)syrinx::parse_pickle(bytes, "fuzz");
  return 0;
}
