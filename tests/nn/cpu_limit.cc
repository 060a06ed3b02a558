// SYRINX_CPU limits the tests of nn and of models to the kernels of a processor (AVX2, SSE4, SSSE3), as it limits the
// program.
#include <cstdio>
#include <cstdlib>

#include "kernels/dispatch.h"

namespace syrinx::kernels {
namespace {

[[maybe_unused]] const bool limited = [] {
  if (std::getenv("SYRINX_CPU") == nullptr) return false;
  const Status status = limit_cpu_from_environment();
  if (!status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    std::exit(1);
  }
  std::printf("targets: %s\n", chosen_target_name().c_str());
  return true;
}();

}  // namespace
}  // namespace syrinx::kernels
