#include "models/transducer/config_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)syrinx::transducer::parse_config({reinterpret_cast<const char*>(data), size}, "fuzz");
  return 0;
}
