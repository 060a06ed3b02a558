#include "base/version.h"

#include "base/build_info.h"

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

}  // namespace syrinx
