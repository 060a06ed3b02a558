#include "base/cpu_info.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace syrinx {
namespace {

// The oracle is the system's own list of flags.
bool kernel_lists(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word == flag) return true;
    }
    return false;
  }
  return false;
}

bool is_amd() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("vendor_id", 0) == 0) return line.find("AuthenticAMD") != std::string::npos;
  return false;
}

TEST(CpuInfo, AgreesWithTheSystem) {
  const CpuInfo& info = cpu_info();
  EXPECT_GE(info.logical_cores, 1);
  EXPECT_FALSE(info.model.empty());
  EXPECT_EQ(&info, &cpu_info());
#if defined(__x86_64__)
  EXPECT_EQ(info.avx512_vnni, kernel_lists("avx512_vnni"));
  EXPECT_EQ(info.avx512_bf16, kernel_lists("avx512_bf16"));
  EXPECT_EQ(info.avx512_bf16_fast, info.avx512_bf16 && is_amd());
  EXPECT_FALSE(info.neon_dotprod || info.neon_bf16);
#else
  EXPECT_FALSE(info.avx512_vnni || info.avx512_bf16);
  (void)kernel_lists, (void)is_amd;  // under emulation /proc/cpuinfo is the host's
#endif
}

TEST(CpuInfo, QuotaOfAContainer) {
  EXPECT_EQ(cores_in_quota("max 100000"), 0);
  EXPECT_EQ(cores_in_quota("100000 100000"), 1);
  EXPECT_EQ(cores_in_quota("100001 100000"), 2);
  EXPECT_EQ(cores_in_quota("50000 100000"), 1);
  EXPECT_EQ(cores_in_quota("1600000 100000"), 16);
  EXPECT_GE(cores_in_quota("9223372036854775807 1"), 1);
  for (const char* odd : {"", " ", "max", "100000", "1 0", "-5 10", "5 x", "5 10 ", "99999999999999999999 1"}) {
    EXPECT_EQ(cores_in_quota(odd), 0) << odd;
  }
}

}  // namespace
}  // namespace syrinx
