#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace syrinx {
namespace {

TEST(Memory, ResidentGrowsWithTouchedPages) {
  constexpr size_t kBytes = size_t{48} << 20;
  const uint64_t before = current_rss_bytes();
  ASSERT_GT(before, 0u);
  std::vector<char> block(kBytes, 1);
  EXPECT_GE(current_rss_bytes() + (8u << 20), before + kBytes);
  EXPECT_GE(virtual_memory_bytes(), current_rss_bytes());
  EXPECT_EQ(block[kBytes / 2], 1);
  block = {};
  EXPECT_GE(peak_rss_bytes(), before + kBytes - (8u << 20));
  EXPECT_GE(total_memory_bytes(), peak_rss_bytes());
}

// Until it has, however long that takes.
TEST(Memory, TellsWhatTheProcessHasComputed) {
  const double before_s = process_cpu_seconds();
  EXPECT_GT(before_s, 0);
  while (process_cpu_seconds() < before_s + 0.01) continue;
  EXPECT_GT(process_cpu_seconds(), before_s);
}

TEST(Memory, FreeDisk) {
  const auto here = free_disk_bytes(".");
  ASSERT_TRUE(here);
  EXPECT_GT(*here, 0u);
  EXPECT_TRUE(free_disk_bytes("not/there/yet"));
  EXPECT_TRUE(free_disk_bytes("/not/there/yet"));
  EXPECT_TRUE(free_disk_bytes(""));
  const auto bad = free_disk_bytes(std::string(5000, 'x'));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kIo);
}

}  // namespace
}  // namespace syrinx
