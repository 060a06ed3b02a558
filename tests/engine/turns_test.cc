#include "engine/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace syrinx {
namespace {

TEST(Turns, AreTakenInTheOrderOfAsking) {
  Turns turns;
  std::vector<int> order;
  std::vector<std::thread> threads;
  {
    const Turns::Turn held(turns);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const Turns::Turn turn(turns);
        order.push_back(i);
      });
      while (turns.asking() < static_cast<uint64_t>(i) + 2) std::this_thread::yield();
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Turns, WhoComesAgainStandsBehindWhoWaits) {
  Turns turns;
  std::atomic<int> inside{0};
  int last = -1;        // whose turn was before
  bool others = false;  // waited when it ended
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int n = 0; n < 200; ++n) {
        const Turns::Turn turn(turns);
        EXPECT_EQ(inside.fetch_add(1), 0);
        EXPECT_FALSE(last == i && others) << "came again before one who waited";
        last = i;
        others = turns.asking() > 1;
        inside.fetch_sub(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace syrinx
