#include "base/spsc_queue.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "base/rng.h"

namespace syrinx {
namespace {

TEST(SpscQueue, KeepsOrderAndAnswersFullAndEmpty) {
  SpscQueue<int> queue(4);
  int value = -1;
  EXPECT_FALSE(queue.try_pop(value));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.try_push(i));
  EXPECT_FALSE(queue.try_push(99));
  EXPECT_EQ(queue.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(queue.try_pop(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_FALSE(queue.try_pop(value));
  EXPECT_TRUE(queue.empty());
}

TEST(SpscQueue, CapacityIsRoundedUp) {
  EXPECT_EQ(SpscQueue<int>(1).capacity(), 1u);
  EXPECT_EQ(SpscQueue<int>(5).capacity(), 8u);
  EXPECT_DEATH(SpscQueue<int>(0), "capacity >= 1");
}

TEST(SpscQueue, FullLeavesTheItemWithTheCaller) {
  SpscQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.try_push(std::move(second)));
  ASSERT_NE(second, nullptr);
  std::unique_ptr<int> out;
  EXPECT_TRUE(queue.try_pop(out));
  EXPECT_EQ(*out, 1);
}

TEST(SpscQueue, BulkMovesAsManyAsFit) {
  SpscQueue<int> queue(8);
  std::vector<int> in(12), out(5);
  std::iota(in.begin(), in.end(), 0);
  EXPECT_EQ(queue.push_some(in), 8u);
  EXPECT_EQ(queue.push_some(in), 0u);
  EXPECT_EQ(queue.pop_some(out), 5u);
  EXPECT_EQ(out, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(queue.push_some(std::span(in).subspan(8)), 4u);  // around the end
  std::vector<int> rest(20);
  EXPECT_EQ(queue.pop_some(rest), 7u);
  rest.resize(7);
  EXPECT_EQ(rest, (std::vector<int>{5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(queue.pop_some(rest), 0u);
}

// One side pushes single items and bulks of random sizes, the other pops so; nothing is lost, repeated or torn.
TEST(SpscQueue, TwoThreads) {
  constexpr uint64_t kItems = 200000;
  struct Item {
    uint64_t value = 0, complement = 0;
  };
  SpscQueue<Item> queue(64);
  std::thread producer([&] {
    Rng rng(1);
    std::vector<Item> bulk;
    for (uint64_t next = 0; next < kItems;) {
      bulk.clear();
      const uint64_t wanted = std::min<uint64_t>(1 + rng.next_u32() % 90, kItems - next);
      for (uint64_t i = 0; i < wanted; ++i) bulk.push_back({next + i, ~(next + i)});
      const size_t pushed = rng.next_u32() % 2 ? queue.push_some(bulk) : size_t{queue.try_push(bulk[0])};
      if (pushed == 0) std::this_thread::yield();
      next += pushed;
    }
  });
  Rng rng(2);
  uint64_t expected = 0;
  std::vector<Item> out(90);
  while (expected < kItems) {
    const size_t count = queue.pop_some(std::span(out).first(1 + rng.next_u32() % 90));
    if (count == 0) std::this_thread::yield();
    EXPECT_LE(queue.size(), queue.capacity());
    for (size_t i = 0; i < count; ++i, ++expected) {
      ASSERT_EQ(out[i].value, expected);
      ASSERT_EQ(out[i].complement, ~expected);
    }
  }
  producer.join();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace syrinx
