// Rounds of numbers: who shares one, in which order, what is thrown, and what is left out.
#include "engine/schedule/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace syrinx {
namespace {

// Each round takes at most `most` requests.
class Numbers final : public Rounds {
 public:
  Numbers(StepQueue& queue, size_t most) : Rounds(queue, 64), most_(most) {}

  bool ask(int number, int64_t due_ns, const std::function<bool()>& is_wanted = {}) {
    return ask_in_parts(number, due_ns, 1, is_wanted);
  }
  // The same of a request that takes so many rounds.
  bool ask_in_parts(int number, int64_t due_ns, int parts, const std::function<bool()>& is_wanted = {}) {
    NumberRequest own;
    own.number = number;
    own.due_ns = due_ns;
    own.parts = parts;
    own.is_wanted = &is_wanted;
    serve(own);
    return own.made;
  }
  // The same in two parts, the first in a turn.
  void ask_in_turn(int number, int64_t due_ns) {
    NumberRequest own;
    own.number = number;
    own.due_ns = due_ns;
    {
      const StepQueue::Turn turn(queue(), due_ns);
      enter(own);
    }
    wait(own);
  }

  std::vector<std::vector<int>> rounds;
  int served = 0;    // requests and parts of them
  int thrower = -1;  // the round with this number throws
  int chooser = -1;  // the choice whose first request has this number throws
  int patient = -1;  // the round with this number waits for members

 private:
  struct NumberRequest : Request {
    int number = 0, parts = 1;
    bool made = false;
  };
  int64_t patience_ns() const override { return static_cast<int>(rounds.size()) == patient ? 10'000'000'000 : 0; }
  void choose(std::vector<Request*>& waiting, std::vector<Request*>& round) override {
    const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(std::min(most_, waiting.size()));
    round.assign(waiting.begin(), end);
    waiting.erase(waiting.begin(), end);
    if (static_cast<NumberRequest&>(*round.front()).number == chooser) throw std::runtime_error("not chosen");
  }
  void make(std::span<Request* const> round, StepQueue::Turn&) override {
    rounds.emplace_back();
    for (Request* const each : round) {
      auto& request = static_cast<NumberRequest&>(*each);
      if (request.is_left()) continue;
      if (request.number == thrower) throw std::runtime_error("thrown");
      ++served;
      request.stays = --request.parts > 0;
      request.made = !request.stays;
      rounds.back().push_back(request.number);
    }
  }

  const size_t most_;
};

class RoundsTest : public ::testing::Test {
 protected:
  void ask(Numbers& numbers, std::function<void()> body) {
    threads_.emplace_back(std::move(body));
    while (numbers.waiting() < threads_.size()) std::this_thread::yield();
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  ManualClock clock_;
  Scheduler scheduler_{clock_};
  StepQueue queue_{scheduler_};
  std::vector<std::thread> threads_;
};

TEST_F(RoundsTest, WaitersShareRoundsEarliestFirst) {
  Numbers numbers(queue_, 3);
  const std::vector<int64_t> due_ns = {500, 400, 300, 200, 100};
  {
    const StepQueue::Turn held(queue_);
    for (size_t i = 0; i < due_ns.size(); ++i)
      ask(numbers, [&, i] { EXPECT_TRUE(numbers.ask(static_cast<int>(i), due_ns[i])); });
    EXPECT_EQ(scheduler_.sooner(kNeverDue), 100);
    EXPECT_EQ(numbers.waiting_behind(), 4u);
    EXPECT_EQ(queue_.waiting(), 1u);
  }
  join();
  EXPECT_EQ(numbers.rounds, (std::vector<std::vector<int>>{{4, 3, 2}, {1, 0}}));
  EXPECT_EQ(numbers.waiting() + queue_.asking(), 0u);
}

TEST_F(RoundsTest, EveryRequestOfARoundHearsOfAThrow) {
  Numbers numbers(queue_, 3);
  numbers.thrower = 1;
  std::atomic<int> thrown{0};
  {
    const StepQueue::Turn held(queue_);
    for (int i = 0; i < 4; ++i)
      ask(numbers, [&, i] {
        try {
          numbers.ask(i, 100 + i);
        } catch (const std::runtime_error&) {
          ++thrown;
        }
      });
  }
  join();
  EXPECT_EQ(thrown, 3);
  EXPECT_EQ(numbers.rounds.back(), (std::vector<int>{3}));
}

// The request whose thread chooses hears of it; the others are in the next round.
TEST_F(RoundsTest, FailedChoiceLeavesOthersServed) {
  Numbers numbers(queue_, 2);
  numbers.chooser = 0;
  std::atomic<int> thrown{0};
  {
    const StepQueue::Turn held(queue_);
    for (int i = 0; i < 3; ++i)
      ask(numbers, [&, i] {
        try {
          numbers.ask(i, 100 + i);
        } catch (const std::runtime_error&) {
          thrown += 1 + i;
        }
      });
  }
  join();
  EXPECT_EQ(thrown, 1);
  EXPECT_EQ(numbers.rounds, (std::vector<std::vector<int>>{{1, 2}}));
  EXPECT_EQ(queue_.asking(), 0u);
}

// By how many it served; those that make nothing are none.
TEST_F(RoundsTest, RoundsAreCountedByMembers) {
  Numbers numbers(queue_, 3);
  {
    const StepQueue::Turn held(queue_);
    for (int i = 0; i < 5; ++i) ask(numbers, [&, i] { numbers.ask(i, 100 + i); });
  }
  join();
  const RoundFigures rounds = queue_.steps().rounds;
  EXPECT_EQ(rounds.rounds, 2u);
  EXPECT_EQ(rounds.members, 5);
  EXPECT_EQ(rounds.squares, 13);
}

// Whether it leads or not.
TEST_F(RoundsTest, LeaversGetNothing) {
  for (const int gone : {0, 1}) {
    Numbers numbers(queue_, 8);
    std::atomic<bool> wanted{true};
    std::vector<int> made(3, -1);
    {
      const StepQueue::Turn held(queue_);
      for (int i = 0; i < 3; ++i)
        ask(numbers, [&, i] { made[i] = numbers.ask(i, 100 + i, [&, i] { return i != gone || wanted; }); });
      wanted = false;
    }
    join();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(made[i], i == gone ? 0 : 1) << gone;
  }
}

// Those that do not fit in a round leave behind it.
TEST_F(RoundsTest, LeaversGoBehindARound) {
  Numbers numbers(queue_, 1);
  {
    const StepQueue::Turn held(queue_);
    for (int i = 0; i < 4; ++i)
      ask(numbers, [&, i] { EXPECT_EQ(numbers.ask(i, 100 + i, [i] { return i == 0; }), i == 0); });
  }
  join();
  EXPECT_EQ(numbers.rounds, (std::vector<std::vector<int>>{{0}}));
}

// A request that is entered in a turn is part of the round behind it.
TEST_F(RoundsTest, EnteringInATurnLosesNoRound) {
  Numbers numbers(queue_, 8);
  {
    const StepQueue::Turn held(queue_);
    ask(numbers, [&] { numbers.ask(1, 300); });
    threads_.emplace_back([&] { numbers.ask_in_turn(2, 200); });
    while (queue_.waiting() < 2) std::this_thread::yield();
  }
  join();
  EXPECT_EQ(numbers.rounds, (std::vector<std::vector<int>>{{2, 1}}));
}

// Whether the request leads or not; others that are due before it do not wait for its end.
TEST_F(RoundsTest, UnfinishedRequestsStay) {
  Numbers numbers(queue_, 2);
  {
    const StepQueue::Turn held(queue_);
    ask(numbers, [&] { EXPECT_TRUE(numbers.ask_in_parts(0, 100, 3)); });
    ask(numbers, [&] { EXPECT_TRUE(numbers.ask_in_parts(1, 200, 2)); });
    ask(numbers, [&] { EXPECT_TRUE(numbers.ask(2, 150)); });
    ask(numbers, [&] { EXPECT_TRUE(numbers.ask(3, 160)); });
  }
  join();
  EXPECT_EQ(numbers.rounds, (std::vector<std::vector<int>>{{0, 2}, {0, 3}, {0, 1}, {1}}));
  EXPECT_EQ(numbers.waiting() + queue_.asking(), 0u);
}

// Round 1 has the request that stays of round 0 and a new one in place of the one that ended, though a third waits.
TEST_F(RoundsTest, WaitingRequestsAreNotTakenForMembersThatComeAgain) {
  Numbers numbers(queue_, 2);
  numbers.patient = 1;
  {
    const StepQueue::Turn held(queue_);
    ask(numbers, [&] {
      EXPECT_TRUE(numbers.ask(0, 100));
      EXPECT_TRUE(numbers.ask(3, 100));
    });
    ask(numbers, [&] { EXPECT_TRUE(numbers.ask_in_parts(1, 200, 2)); });
    ask(numbers, [&] { EXPECT_TRUE(numbers.ask(2, 300)); });
  }
  join();
  EXPECT_EQ(numbers.rounds, (std::vector<std::vector<int>>{{0, 1}, {3, 1}, {2}}));
}

// A part is no service.
TEST_F(RoundsTest, PartsCountOnceServed) {
  Numbers numbers(queue_, 2);
  {
    const StepQueue::Turn held(queue_);
    ask(numbers, [&] { numbers.ask_in_parts(0, 100, 3); });
    ask(numbers, [&] { numbers.ask(1, 150); });
  }
  join();
  const RoundFigures rounds = queue_.steps().rounds;
  EXPECT_EQ(rounds.rounds, 2u);  // with the second request, and with the last part
  EXPECT_EQ(rounds.members, 2);
}

TEST_F(RoundsTest, UnfinishedRequestsLeaveBetweenParts) {
  Numbers numbers(queue_, 1);
  {
    const StepQueue::Turn held(queue_);
    ask(numbers, [&] { EXPECT_FALSE(numbers.ask_in_parts(0, 100, 1000, [&] { return numbers.served < 3; })); });
    ask(numbers, [&] { EXPECT_TRUE(numbers.ask(1, 200)); });
  }
  join();
  EXPECT_EQ(numbers.rounds, (std::vector<std::vector<int>>{{0}, {0}, {0}, {1}}));
}

// Its thread hears of a throw in any part.
TEST_F(RoundsTest, ThrowEndsUnfinishedRequests) {
  Numbers numbers(queue_, 2);
  numbers.thrower = 1;
  {
    const StepQueue::Turn held(queue_);
    ask(numbers, [&] { EXPECT_THROW(numbers.ask_in_parts(0, 100, 5), std::runtime_error); });
    ask(numbers, [&] { EXPECT_THROW(numbers.ask(1, 200), std::runtime_error); });
  }
  join();
  EXPECT_EQ(numbers.waiting() + queue_.asking(), 0u);
}

TEST_F(RoundsTest, ThreadsAreAllServed) {
  Numbers numbers(queue_, 3);
  std::atomic<int> made{0};
  for (int i = 0; i < 6; ++i)
    threads_.emplace_back([&, i] {
      for (int n = 0; n < 300; ++n)
        made += numbers.ask_in_parts(i, n % 7 == 0 ? kDueAtOnce : 100 + n, 1 + n % 3, [n] { return n % 5 != 0; });
    });
  std::thread other([&] {
    for (int n = 0; n < 300; ++n) const StepQueue::Turn turn(queue_, n % 2 == 0 ? kNeverDue : 50);
  });
  join();
  other.join();
  EXPECT_EQ(made, 6 * 240);
  EXPECT_EQ(queue_.asking() + numbers.waiting(), 0u);
}

}  // namespace
}  // namespace syrinx
