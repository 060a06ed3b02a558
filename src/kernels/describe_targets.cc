#include "kernels/describe_targets.h"

#include "kernels/dispatch.h"

namespace syrinx::kernels {

std::string describe_built_targets() {
  std::string names;
  for (const std::string& name : built_targets()) names += (names.empty() ? "" : " ") + name;
  return names;
}

std::string describe_chosen_target() {
  std::string name = chosen_target_name();
  if (use_avx512_vnni()) name += " with VNNI";
  if (use_avx512_bf16()) name += use_avx512_vnni() ? " and BF16" : " with BF16";
  if (use_neon_dotprod()) name += " with the dot product";
  if (use_neon_bf16()) name += " and BF16";
  return name;
}

}  // namespace syrinx::kernels
