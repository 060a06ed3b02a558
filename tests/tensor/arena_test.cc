#include "tensor/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace syrinx {
namespace {

TEST(Arena, HandsOutPlannedMemory) {
  ArenaPlan plan;
  plan.add<float>(3);
  plan.add<int8_t>(65);
  plan.add<double>(0);
  plan.add<double>(8);
  EXPECT_EQ(plan.bytes(), 64u + 128 + 0 + 64);
  Arena arena(plan.bytes());
  const auto a = arena.take<float>(3);
  const auto b = arena.take<int8_t>(65);
  const auto none = arena.take<double>(0);
  const auto c = arena.take<double>(8);
  EXPECT_EQ(arena.used_bytes(), plan.bytes());
  EXPECT_TRUE(none.empty());
  for (const void* start :
       {static_cast<const void*>(a.data()), static_cast<const void*>(b.data()), static_cast<const void*>(c.data())}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(start) % kArenaAlignment, 0u);
  }
  std::fill(b.begin(), b.end(), int8_t{-1});
  EXPECT_TRUE(std::all_of(a.begin(), a.end(), [](float v) { return v == 0; }));
  EXPECT_TRUE(std::all_of(c.begin(), c.end(), [](double v) { return v == 0; }));
}

TEST(Arena, RewindGivesTheSameMemoryAgain) {
  Arena arena(256);
  const auto kept = arena.take<float>(16);
  const size_t mark = arena.used_bytes();
  const auto first = arena.take<float>(32);
  arena.rewind(mark);
  const auto second = arena.take<float>(32);
  EXPECT_EQ(first.data(), second.data());
  arena.rewind();
  EXPECT_EQ(arena.take<float>(16).data(), kept.data());
}

TEST(Arena, GrowsBetweenSteps) {
  Arena arena;
  arena.grow(128);
  EXPECT_EQ(arena.size_bytes(), 128u);
  (void)arena.take<float>(32);
  arena.grow(64);  // never shrinks, always starts afresh
  EXPECT_EQ(arena.size_bytes(), 128u);
  EXPECT_EQ(arena.used_bytes(), 0u);
  arena.grow(4096);
  EXPECT_EQ(arena.take<float>(1024).size(), 1024u);
}

TEST(ArenaDeathTest, MoreThanPlannedAborts) {
  Arena arena(128);
  (void)arena.take<float>(17);
  EXPECT_DEATH((void)arena.take<float>(1), "64 bytes wanted, 128 of 128 used");
  EXPECT_DEATH((void)arena.take<double>(~size_t{0} / 4), "items");
  EXPECT_DEATH(arena.rewind(129), "mark 129 used 128");
  ArenaPlan plan;
  EXPECT_DEATH(plan.add<double>(~size_t{0} / 8), "items");
}

}  // namespace
}  // namespace syrinx
