#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto value = syrinx::parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!value) return 0;
  const std::string text = value->dump();
  if (!syrinx::parse_json(text, "again")) __builtin_trap();  // what we write, we read
  return 0;
}
