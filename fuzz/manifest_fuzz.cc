#include "store/model_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = syrinx::parse_manifest({reinterpret_cast<const char*>(data), size}, "/folder");
  if (!model) return 0;
  for (const auto& file : model->files) {
    if ((file.path + "/").find("/../") != std::string::npos || file.path.rfind("/folder/", 0) != 0) __builtin_trap();
  }
  return 0;
}
