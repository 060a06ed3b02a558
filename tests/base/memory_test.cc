#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace syrinx {
namespace {

// Sanitizers have allocators of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SYRINX_KEEPS_FREED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SYRINX_KEEPS_FREED
#endif
#endif
#if defined(SYRINX_KEEPS_FREED)
constexpr bool kKeepsFreed = true;
#else
constexpr bool kKeepsFreed = false;
#endif

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

// Behind each block that is freed stands one that is not, as where other sessions go on.
TEST(Memory, ReturnsFreedMemoryToTheSystem) {
  constexpr size_t kBlocks = 96, kBlockBytes = size_t{512} << 10;
  give_back_what_is_freed();
  { const std::vector<char> longer(8 * kBlockBytes, 1); }  // behind which glibc would keep any such block
  const uint64_t before = current_rss_bytes();
  std::vector<std::vector<char>> blocks, others;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.emplace_back(kBlockBytes, 1);
    others.emplace_back(1024, 1);
  }
  EXPECT_GE(current_rss_bytes() + (8u << 20), before + kBlocks * kBlockBytes);
  blocks.clear();
  EXPECT_LE(current_rss_bytes(), kKeepsFreed ? UINT64_MAX : before + (8u << 20));
}

// A block that is not freed stands behind each of those that are, so the heap cannot shrink.
TEST(Memory, UnusedPagesLeaveTheProcess) {
  constexpr size_t kBlocks = 256, kBlockBytes = size_t{64} << 10;
  std::vector<std::vector<char>> blocks, others;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.emplace_back(kBlockBytes, 1);
    others.emplace_back(1024, static_cast<char>(i));
  }
  blocks.clear();
  const uint64_t before = current_rss_bytes();
  give_back_unused_pages();
  const uint64_t freed = kKeepsFreed ? 0 : kBlocks * kBlockBytes / 2;
  EXPECT_LT(current_rss_bytes() + freed, before);
  for (size_t i = 0; i < kBlocks; ++i) EXPECT_EQ(others[i], std::vector<char>(1024, static_cast<char>(i)));
}

// Until it has, however long that takes.
TEST(Memory, CpuTimeGrowsWithWork) {
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
