// Any bytes as an index of safetensors files: what it names must be files of its own folder.
#include "base/check.h"
#include "tensor/safetensors_shards.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index = syrinx::parse_safetensors_index({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!index) return 0;
  SYRINX_CHECK(!index->files.empty() && index->files.size() <= syrinx::kMaxSafetensorsShards, "{} files",
               index->files.size());
  for (const std::string& file : index->files) SYRINX_CHECK(file.find('/') == std::string::npos);
  for (const auto& entry : index->entries) SYRINX_CHECK(entry.file < index->files.size());
  return 0;
}
