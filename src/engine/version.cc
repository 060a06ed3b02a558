#include "engine/version.h"

#include "engine/build_info.h"
#include "kernels/dispatch.h"

namespace syrinx {

const char* version() { return SYRINX_BUILD_VERSION; }
const char* commit() { return SYRINX_BUILD_COMMIT; }
const char* build_type() { return SYRINX_BUILD_TYPE; }

const char* compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

std::string built_targets() {
  std::string names;
  for (const std::string& name : kernels::built_targets()) names += (names.empty() ? "" : " ") + name;
  return names;
}

std::string chosen_target() {
  std::string name = kernels::chosen_target_name();
  if (kernels::use_avx512_vnni()) name += " with VNNI";
  if (kernels::use_avx512_bf16()) name += kernels::use_avx512_vnni() ? " and BF16" : " with BF16";
  if (kernels::use_neon_dotprod()) name += " with the dot product";
  if (kernels::use_neon_bf16()) name += " and BF16";
  return name;
}

}  // namespace syrinx
