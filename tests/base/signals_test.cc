#include "base/signals.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

namespace syrinx {
namespace {

TEST(Signals, InterruptSetsTheFlag) {
  clear_cancel();
  install_signal_handlers();
  EXPECT_FALSE(cancel_requested());
  EXPECT_EQ(cancel_signal(), 0);
  raise(SIGTERM);
  EXPECT_TRUE(cancel_requested());
  EXPECT_EQ(cancel_signal(), SIGTERM);
  clear_cancel();
  EXPECT_FALSE(cancel_requested());
}

TEST(Signals, RequestNeedsNoSignal) {
  clear_cancel();
  request_cancel();
  EXPECT_TRUE(cancel_flag().load());
  EXPECT_EQ(cancel_signal(), 0);
  clear_cancel();
}

TEST(Signals, ResumeCatchesTheNextInterrupt) {
  install_signal_handlers();
  for (int i = 0; i < 3; ++i) {
    raise(SIGINT);
    EXPECT_TRUE(cancel_requested());
    EXPECT_EQ(cancel_signal(), SIGINT);
    resume_after_interrupt();
    EXPECT_FALSE(cancel_requested());
    EXPECT_EQ(cancel_signal(), 0);
  }
}

TEST(Signals, ResumeKeepsATermination) {
  for (const auto& [first, second] : {std::pair{SIGINT, SIGTERM}, {SIGTERM, SIGINT}}) {
    clear_cancel();
    install_signal_handlers();
    raise(first);
    raise(second);
    resume_after_interrupt();
    EXPECT_TRUE(cancel_requested());
    EXPECT_EQ(cancel_signal(), SIGTERM);
  }
  clear_cancel();
}

TEST(Signals, TerminationAmidResumeIsKept) {
  constexpr int kRounds = 100, kOver = kRounds + 1;
  const pthread_t self = pthread_self();
  std::atomic<int> round{0}, sent{0};
  std::thread sender([&] {
    for (int i = 1; i <= kRounds; sent = i++) {
      while (round < i) std::this_thread::yield();
      if (round == kOver) return;
      pthread_kill(self, SIGTERM);
    }
  });
  bool is_kept = true;
  for (int i = 1; i <= kRounds && is_kept; ++i) {
    clear_cancel();
    install_signal_handlers();
    raise(SIGINT);
    round = i;
    do resume_after_interrupt();
    while (sent < i);
    std::this_thread::yield();  // behind a system call no signal is on its way
    is_kept = cancel_requested() && cancel_signal() == SIGTERM;
  }
  round = kOver;
  sender.join();
  EXPECT_TRUE(is_kept);
  clear_cancel();
}

TEST(Signals, ClosedPipeIsAnError) {
  install_signal_handlers();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(Signals, AFileAsLongAsItMayBecomeIsAnError) {
  install_signal_handlers();
  FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{.rlim_cur = 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(write(fileno(file), "xy", 2), 1);
  EXPECT_EQ(write(fileno(file), "y", 1), -1);
  EXPECT_EQ(errno, EFBIG);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::fclose(file);
}

TEST(Signals, AHangupOfNoTerminalAsksForFilesToBeReadAgain) {
  clear_cancel();
  catch_hangup();
  EXPECT_FALSE(take_reload_request());
  raise(SIGHUP);
  EXPECT_TRUE(take_reload_request());
  EXPECT_FALSE(take_reload_request());
  EXPECT_FALSE(cancel_requested());
}

TEST(Signals, BlockedReadIsInterrupted) {
  clear_cancel();
  install_signal_handlers();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pthread_t reader = pthread_self();
  std::atomic<bool> done{false};
  // Each signal after the first would end the process, so the handler is put back before every one, and no other is
  // sent until that one has come.
  std::thread sender([&] {
    while (!done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (done) break;
      clear_cancel();
      install_signal_handlers();
      pthread_kill(reader, SIGINT);
      while (!cancel_requested()) std::this_thread::yield();
    }
  });
  char byte = 0;
  const ssize_t got = read(ends[0], &byte, 1);
  const int error = errno;
  done = true;
  sender.join();
  EXPECT_EQ(got, -1);
  EXPECT_EQ(error, EINTR);
  EXPECT_TRUE(cancel_requested());
  clear_cancel();
  close(ends[0]);
  close(ends[1]);
}

// As docker and podman send theirs: from outside of the container, where a sender has no number.
TEST(Signals, NoLeaderWithoutATerminal) {
  EXPECT_TRUE(is_from_leader(SI_USER, 7, 7));
  EXPECT_FALSE(is_from_leader(SI_USER, 8, 7));
  EXPECT_FALSE(is_from_leader(SI_USER, 0, kNoSession));
  EXPECT_TRUE(is_from_leader(SI_USER, 0, 0));  // the terminal is that of a shell outside
  EXPECT_FALSE(is_from_leader(SI_QUEUE, 7, 7));
}

TEST(SignalsDeathTest, TheSecondEndsTheProcess) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        raise(SIGINT);
        if (!cancel_requested()) _exit(1);
        raise(SIGINT);
        _exit(2);
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace syrinx
