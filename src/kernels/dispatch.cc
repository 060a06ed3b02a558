#include "kernels/dispatch.h"

#include <hwy/highway.h>

#include <atomic>
#include <bit>
#include <cstdlib>

#include "base/cpu_info.h"

namespace syrinx::kernels {
namespace {

constexpr int64_t kTargets = HWY_TARGETS;  // one bit each, the better the lower

// Whether our own functions beyond Highway's targets may be used; cleared by the _PLAIN names and by tests.
std::atomic<bool> extensions_allowed{true};

constexpr int64_t lowest_bit(int64_t targets) { return targets & ~(targets - 1); }

// Highway calls its last resort EMU128 under some compilers and SCALAR under others; to us both are SCALAR.
const char* target_name(int64_t target) {
  return (target & (HWY_EMU128 | HWY_SCALAR)) != 0 ? "SCALAR" : hwy::TargetName(target);
}

// The processor's targets, asked once: each hwy::SupportedTargets() runs CPUID, which takes tens of microseconds on
// virtual machines, and in version 1.0.3 undoes DisableTargets().
int64_t detected_targets() {
  static const int64_t detected = hwy::SupportedTargets();
  return detected;
}

std::atomic<int64_t> chosen{0};  // 0: not yet asked for

int64_t best_of(int64_t targets) {
  const int64_t usable = targets & kTargets;
  return usable != 0 ? lowest_bit(usable) : static_cast<int64_t>(HWY_STATIC_TARGET);
}

// Makes Highway dispatch within `targets`.  The setting "for test" is the one that survives its own detection.
void use_targets(int64_t targets, bool extensions) {
  detected_targets();  // before Highway's answer is replaced
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(targets);
  chosen.store(best_of(targets), std::memory_order_relaxed);
  extensions_allowed.store(extensions, std::memory_order_relaxed);
}

int64_t chosen_target() {
  const int64_t known = chosen.load(std::memory_order_relaxed);
  return known != 0 ? known : best_of(detected_targets());
}

[[maybe_unused]] bool target_is(int64_t target) {
  return extensions_allowed.load(std::memory_order_relaxed) && chosen_target() == target;
}

}  // namespace

Status limit_cpu(std::string_view name) {
  constexpr std::string_view kPlain = "_PLAIN";
  const bool plain = name.ends_with(kPlain);
  const std::string_view base = plain ? name.substr(0, name.size() - kPlain.size()) : name;
  int64_t limit = 0;
  for (int64_t rest = kTargets; rest != 0; rest &= rest - 1) {
    const int64_t target = lowest_bit(rest);
    if (base == target_name(target)) limit = target;
  }
  if ((limit == 0 && !name.empty()) || (plain && base != "AVX3" && base != "NEON")) {
    std::string known;
    for (const std::string& target : built_targets()) known += " " + target;
    return fail(Code::kInvalidArgument, "the processor limit '{}' is not a target of this build; it has{}", name,
                known);
  }
  use_targets(limit == 0 ? detected_targets() : detected_targets() & ~(limit - 1), !plain);
  return {};
}

Status limit_cpu_from_environment() {
  const char* name = std::getenv("SYRINX_CPU");
  if (name == nullptr || *name == '\0') return {};
  return limit_cpu(name);
}

#if HWY_ARCH_X86
bool use_avx512_vnni() { return cpu_info().avx512_vnni && target_is(HWY_AVX3); }
bool use_avx512_bf16() { return cpu_info().avx512_bf16 && target_is(HWY_AVX3); }
bool use_neon_dotprod() { return false; }
bool use_neon_bf16() { return false; }
#elif HWY_ARCH_ARM_A64
bool use_avx512_vnni() { return false; }
bool use_avx512_bf16() { return false; }
// Every target of this architecture stands on NEON.
bool use_neon_dotprod() { return cpu_info().neon_dotprod && extensions_allowed.load(std::memory_order_relaxed); }
bool use_neon_bf16() { return cpu_info().neon_bf16 && extensions_allowed.load(std::memory_order_relaxed); }
#else
bool use_avx512_vnni() { return false; }
bool use_avx512_bf16() { return false; }
bool use_neon_dotprod() { return false; }
bool use_neon_bf16() { return false; }
#endif

std::string chosen_target_name() { return target_name(chosen_target()); }

std::vector<std::string> built_targets() {
  std::vector<std::string> names;
  for (int64_t rest = kTargets; rest != 0; rest &= rest - 1) names.emplace_back(target_name(lowest_bit(rest)));
  return names;
}

std::vector<int64_t> usable_targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = detected_targets() & kTargets; rest != 0; rest &= rest - 1) targets.push_back(lowest_bit(rest));
  return targets;
}

void force_target_for_test(int64_t target, bool extensions) {
  use_targets(target == 0 ? detected_targets() : target, extensions);
}

}  // namespace syrinx::kernels
