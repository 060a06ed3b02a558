#include "base/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace syrinx {
namespace {

std::string model_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

#if defined(__x86_64__)
// AVX-512 state enabled by the system (XCR0 bits 1, 2, 5, 6, 7) and F, DQ, BW, VL present.
void detect_x86(CpuInfo& info) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (1u << 27)) == 0) return;
  unsigned xcr0 = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
  if ((xcr0 & 0xe6u) != 0xe6u) return;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
  const unsigned f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
  if ((b & (f | dq | bw | vl)) != (f | dq | bw | vl)) return;
  info.avx512_vnni = (c & (1u << 11)) != 0;
  if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) info.avx512_bf16 = (a & (1u << 5)) != 0;
  char vendor[12] = {};
  if (!__get_cpuid(0, &a, &b, &c, &d)) return;
  std::memcpy(vendor, &b, 4);
  std::memcpy(vendor + 4, &d, 4);
  std::memcpy(vendor + 8, &c, 4);
  info.avx512_bf16_fast = info.avx512_bf16 && std::string_view(vendor, sizeof vendor) == "AuthenticAMD";
}
#endif

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The least quota of this process's control group and of those above it (version 2, as today's containers have).
int container_cores() {
  const std::string group = first_line("/proc/self/cgroup");
  constexpr std::string_view kUnified = "0::";
  std::string path = group.starts_with(kUnified) ? group.substr(kUnified.size()) : "";
  int least = 0;
  while (true) {
    if (path == "/") path.clear();
    const int cores = cores_in_quota(first_line("/sys/fs/cgroup" + path + "/cpu.max"));
    if (cores > 0 && (least == 0 || cores < least)) least = cores;
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

CpuInfo detect() {
  CpuInfo info;
  info.model = model_name();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) info.logical_cores = CPU_COUNT(&set);
  if (const int quota = container_cores(); quota > 0) info.logical_cores = std::min(info.logical_cores, quota);
  const long l2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (l2 > 0) info.l2_bytes = static_cast<size_t>(l2);
#if defined(__x86_64__)
  detect_x86(info);
#elif defined(__aarch64__)
  info.neon_dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  info.neon_bf16 = (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
#endif
  return info;
}

}  // namespace

int cores_in_quota(std::string_view cpu_max) {
  const size_t space = cpu_max.find(' ');
  if (space == std::string_view::npos) return 0;
  int64_t quota = 0, period = 0;
  const auto number = [](std::string_view text, int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value > 0;
  };
  // "max" is no number: no limit.
  if (!number(cpu_max.substr(0, space), quota) || !number(cpu_max.substr(space + 1), period)) return 0;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, CPU_SETSIZE));
}

const CpuInfo& cpu_info() {
  static const CpuInfo info = detect();
  return info;
}

}  // namespace syrinx
