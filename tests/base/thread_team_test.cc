#include "base/thread_team.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "base/cpu_info.h"
#include "base/rng.h"

namespace syrinx {
namespace {

// 1: no thread at all.  3 and 8: more members than cores on small machines, which is where wake-ups get lost.
class ThreadTeamTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadTeamTest, testing::Values(1, 2, 3, 8));

TEST_P(ThreadTeamTest, EveryMemberRunsOnce) {
  ThreadTeam team(GetParam());
  ASSERT_EQ(team.size(), GetParam());
  std::vector<int> calls(static_cast<size_t>(team.size()));
  for (int round = 1; round <= 500; ++round) {
    team.run([&](int member) { ++calls[static_cast<size_t>(member)]; });
    for (int count : calls) ASSERT_EQ(count, round);  // plain ints: run() is the synchronisation
  }
}

TEST_P(ThreadTeamTest, TheCallerIsMemberZero) {
  ThreadTeam team(GetParam());
  std::vector<std::thread::id> ids(static_cast<size_t>(team.size()));
  team.run([&](int member) { ids[static_cast<size_t>(member)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), ids.size());
}

// Each phase reads what all the others wrote in the phase before.
TEST_P(ThreadTeamTest, BarrierSeparatesPhases) {
  ThreadTeam team(GetParam());
  const size_t members = static_cast<size_t>(team.size());
  constexpr int kPhases = 300;
  std::vector<int64_t> values(members, 1), next(members);
  std::vector<int> wrong(members);
  team.run([&](int member) {
    const size_t m = static_cast<size_t>(member);
    for (int phase = 0; phase < kPhases; ++phase) {
      next[m] = std::accumulate(values.begin(), values.end(), int64_t{0}) % 1000003;
      team.barrier();
      values[m] = next[m] + static_cast<int64_t>(m);
      team.barrier();
      for (size_t other = 0; other < members; ++other) {
        if (values[other] != next[other] + static_cast<int64_t>(other)) ++wrong[m];
      }
      team.barrier();
    }
  });
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), 0), 0);
  for (size_t m = 1; m < members; ++m) EXPECT_EQ(next[m], next[0]);
}

// Long pauses on one side or the other make members and caller park, then wake.
TEST_P(ThreadTeamTest, ParksAndWakes) {
  ThreadTeam team(GetParam());
  Rng rng(4);
  int64_t sum = 0;
  std::vector<int64_t> parts(static_cast<size_t>(team.size()));
  for (int round = 0; round < 60; ++round) {
    const uint32_t slow = rng.next_u32() % static_cast<uint32_t>(team.size());
    const auto pause = std::chrono::microseconds(rng.next_u32() % 3000);
    if (round % 2 == 0) std::this_thread::sleep_for(pause);
    team.run([&](int member) {
      if (static_cast<uint32_t>(member) == slow) std::this_thread::sleep_for(pause);
      if (round % 3 == 0) team.barrier();
      parts[static_cast<size_t>(member)] += round;
    });
    sum += round;
  }
  for (int64_t part : parts) EXPECT_EQ(part, sum);
}

TEST_P(ThreadTeamTest, JobsOfAnyKind) {
  ThreadTeam team(GetParam());
  std::atomic<int> calls{0};
  const auto constant = [&](int) { ++calls; };
  team.run(constant);
  struct Counter {
    std::atomic<int>& calls;
    void operator()(int) { ++calls; }
  } counter{calls};
  team.run(counter);
  team.run(Counter{calls});
  EXPECT_EQ(calls, 3 * team.size());
}

TEST(ThreadTeam, MadeAndDroppedAgain) {
  for (int i = 0; i < 50; ++i) {
    ThreadTeam idle(4);  // never used
    ThreadTeam used(1 + i % 4);
    int sum = 0;
    used.run([&](int member) {
      if (member == 0) sum = 7;
    });
    EXPECT_EQ(sum, 7);
  }
  EXPECT_EQ(ThreadTeam(0).size(), 1);
  EXPECT_EQ(ThreadTeam(-5).size(), 1);
}

TEST(ThreadTeam, TwoTeamsSideBySide) {
  std::vector<std::thread> callers;
  std::atomic<int> total{0};
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      ThreadTeam team(3);
      for (int i = 0; i < 100; ++i) team.run([&](int) { total.fetch_add(1, std::memory_order_relaxed); });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total, 3 * 3 * 100);
}

// One after the other is allowed from different threads, given an order between them.
// Parts of several sizes, whose barriers count their own members.
TEST_P(ThreadTeamTest, PartsRunTheFirstMembers) {
  ThreadTeam whole(GetParam());
  for (int members = 1; members <= whole.size() + 1; ++members) {
    ThreadTeam part(whole, members);
    ASSERT_EQ(part.size(), std::min(members, whole.size()));
    for (int round = 0; round < 50; ++round) {
      std::vector<int> calls(static_cast<size_t>(whole.size()) + 1), sums(calls.size());
      part.run([&](int member) {
        ++calls[static_cast<size_t>(member)];
        part.barrier();
        sums[static_cast<size_t>(member)] = std::accumulate(calls.begin(), calls.end(), 0);
      });
      for (size_t member = 0; member < calls.size(); ++member) {
        const bool works = member < static_cast<size_t>(part.size());
        ASSERT_EQ(calls[member], works ? 1 : 0);
        ASSERT_EQ(sums[member], works ? part.size() : 0);
      }
    }
  }
}

TEST(ThreadTeam, GrowsBetweenJobs) {
  ThreadTeam whole(1);
  ThreadTeam before(whole, 1);
  for (const int size : {2, 2, 1, 5}) {
    whole.grow(size);
    ThreadTeam part(whole, size);
    for (ThreadTeam* const team : {&whole, &part, &before}) {
      std::vector<int> calls(static_cast<size_t>(team->size()));
      for (int round = 0; round < 20; ++round) team->run([&](int member) { ++calls[static_cast<size_t>(member)]; });
      for (const int count : calls) EXPECT_EQ(count, 20);
    }
  }
  EXPECT_EQ(whole.size(), 5);
}

TEST(ThreadTeam, CallersMayTakeTurns) {
  ThreadTeam team(2);
  std::vector<int> calls(2);
  for (int i = 0; i < 20; ++i) {
    std::thread([&] { team.run([&](int member) { ++calls[static_cast<size_t>(member)]; }); }).join();
  }
  EXPECT_EQ(calls, (std::vector<int>{20, 20}));
}

TEST(ThreadTeam, PinsMembersNotTheCaller) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  ThreadTeam team(2, true);
  std::vector<int> cores(2);
  team.run([&](int member) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    cores[static_cast<size_t>(member)] = CPU_COUNT(&set);
  });
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_EQ(cores[1], 1);
}

// From whichever core the caller begins, the other member is elsewhere, if there is another core.
TEST(ThreadTeam, MembersKeepOffTheCallersCore) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  ThreadTeam team(2);
  std::thread caller([&] {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &allowed)) continue;
      cpu_set_t here, theirs;
      CPU_ZERO(&here);
      CPU_SET(core, &here);
      ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
      int cores[2] = {-1, -1};
      team.run([&](int member) {
        cores[member] = sched_getcpu();
        if (member == 1) sched_getaffinity(0, sizeof theirs, &theirs);
      });
      EXPECT_EQ(cores[0], core);
      cpu_set_t want = allowed;
      if (CPU_COUNT(&allowed) > 1) {
        EXPECT_NE(cores[1], core);
        CPU_CLR(core, &want);
      }
      EXPECT_TRUE(CPU_EQUAL(&theirs, &want)) << core;
    }
  });
  caller.join();
}

cpu_set_t only(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return set;
}

// The cores that this thread may use.
std::vector<int> own_cores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

// How often of `rounds` a caller of two cores that goes to the other one inside a job, then waits parked, is there
// still behind it.
int stays(ThreadTeam& team, int first, int other, int rounds) {
  cpu_set_t both = only(first);
  CPU_SET(other, &both);
  int count = 0;
  std::thread([&] {
    for (int round = 0; round < rounds; ++round) {
      const cpu_set_t begin = only(first), move = only(other);
      EXPECT_EQ(sched_setaffinity(0, sizeof begin, &begin), 0);
      team.run([&](int member) {
        if (member != 0) return std::this_thread::sleep_for(std::chrono::milliseconds(3));
        EXPECT_EQ(sched_setaffinity(0, sizeof move, &move), 0);
        EXPECT_EQ(sched_setaffinity(0, sizeof both, &both), 0);
      });
      count += sched_getcpu() == other ? 1 : 0;
      cpu_set_t after;
      EXPECT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
      EXPECT_TRUE(CPU_EQUAL(&after, &both));
    }
  }).join();
  return count;
}

// A caller is sent back to where it began only where the members keep off that core.  It also leaves a core that
// somebody else keeps busy: so the two change about, until that one has gone or is on the other.
TEST(ThreadTeam, CallersOfPinnedOrCrowdedTeamsStayWhereTheyWake) {
  const std::vector<int> cores = own_cores();
  constexpr int kRounds = 40;
  ThreadTeam pinned(2, true), crowded(static_cast<int>(cores.size()) + 1);
  for (ThreadTeam* const team : {&pinned, &crowded}) {
    int first = cores.front(), other = cores.back(), most = 0;
    for (int i = 0; i < 40 && most <= kRounds / 10; ++i, std::swap(first, other))
      most = stays(*team, first, other, kRounds);
    EXPECT_GT(most, kRounds / 10);
  }
}

// A member's mask that is set from outside is not undone when the caller moves.
TEST(ThreadTeam, MembersTakeAMaskFromOutside) {
  const std::vector<int> cores = own_cores();
  ThreadTeam team(2);
  pid_t id = 0;
  cpu_set_t seen;
  const auto run_on = [&](int core) {
    std::thread([&, here = only(core)] {
      EXPECT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
      team.run([&](int member) {
        if (member == 0) return;
        id = gettid();
        EXPECT_EQ(sched_getaffinity(0, sizeof seen, &seen), 0);
      });
    }).join();
  };
  run_on(cores.front());
  const cpu_set_t outside = only(cores.front());
  ASSERT_EQ(sched_setaffinity(id, sizeof outside, &outside), 0);
  for (const int core : {cores.back(), cores.front()}) {
    run_on(core);
    EXPECT_TRUE(CPU_EQUAL(&seen, &outside)) << core;
  }
}

TEST(ThreadTeam, MembersBlockSignals) {
  ThreadTeam team(2);
  std::vector<int> blocked(2);
  team.run([&](int member) {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    blocked[static_cast<size_t>(member)] = sigismember(&mask, SIGINT);
  });
  EXPECT_EQ(blocked, (std::vector<int>{0, 1}));
}

TEST(ThreadTeamDeathTest, RunInsideAJobAborts) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        ThreadTeam team(2);
        team.run([&](int member) {
          if (member == 0) team.run([](int) {});
        });
      },
      "one caller at a time");
}

TEST(SplitRange, CoversWithoutGapsAtMultiplesOfTheGrain) {
  for (size_t count : {0, 1, 2, 7, 16, 63, 64, 65, 1000}) {
    for (int members : {1, 2, 3, 5, 8}) {
      for (size_t grain : {1, 4, 16}) {
        size_t at = 0, smallest = ~size_t{0}, largest = 0;
        for (int member = 0; member < members; ++member) {
          const Range range = split_range(count, member, members, grain);
          ASSERT_EQ(range.begin, at);
          ASSERT_LE(range.begin, range.end);
          ASSERT_TRUE(range.begin == count || range.begin % grain == 0);
          const size_t units = (range.end - range.begin + grain - 1) / grain;
          smallest = std::min(smallest, units);
          largest = std::max(largest, units);
          at = range.end;
        }
        ASSERT_EQ(at, count);
        ASSERT_LE(largest - smallest, 1u);
      }
    }
  }
}

}  // namespace
}  // namespace syrinx
