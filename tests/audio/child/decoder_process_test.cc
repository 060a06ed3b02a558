#include "audio/child/decoder_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <random>
#include <thread>

#include "audio/child/decode_talk.h"
#include "tests/base/temp_folder.h"

namespace syrinx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Outcome {
  Status status;
  size_t samples = 0;
  double seconds = 0;
};

DecoderProcess start(const char* how) {
  auto child = DecoderProcess::start({SYRINX_HOSTILE_DECODER, how});
  EXPECT_TRUE(child) << child.error().message;
  return std::move(*child);
}

Outcome decode(DecoderProcess& child, const std::function<Status()>& heard = {}) {
  const std::string file(1000, 'a'), name = "me";
  Outcome outcome;
  const SoundLimits limits;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add =
                           [&](std::span<const float> samples) {
                             outcome.samples += samples.size();
                             return heard ? heard() : Status();
                           }};
  MonoMixer mixer(limits, name, sink);
  const Stopwatch watch;
  outcome.status = decode_by(child, {std::as_bytes(std::span(file)), SoundContainer::kMp4, name, mixer});
  outcome.seconds = watch.elapsed_ms() * 1e-3;
  return outcome;
}

void expect_end(const char* how, Code code, const std::string& part, const DecoderPatience& patience = {}) {
  DecoderProcess child = start(how);
  const pid_t pid = child.pid();
  child.set_patience(patience);
  const Outcome got = decode(child);
  ASSERT_FALSE(got.status) << how;
  EXPECT_EQ(got.status.error().code, code) << got.status.error().message;
  EXPECT_THAT(got.status.error().message, AllOf(HasSubstr("'me'"), HasSubstr(part))) << how;
  { const DecoderProcess ended = std::move(child); }
  EXPECT_EQ(::kill(pid, 0), -1);  // it is gone, and was waited for
  EXPECT_EQ(errno, ESRCH);
}

TEST(DecoderProcess, SandboxRefusesUnneededCalls) {
  ASSERT_EQ(::setenv("SYRINX_SECRET", "key", 1), 0);
  const int open_file = ::open("/dev/null", O_RDONLY);  // inherited, if nobody closed it
  ASSERT_GE(open_file, 0);
  for (const char* const how : {"file", "socket", "fork", "exec", "code", "limit"})
    expect_end(how, Code::kDataLoss, std::string(how == std::string("file") ? "open" : how) + " refused");
  expect_end("inherit", Code::kDataLoss, "inherited refused");
  ::close(open_file);
}

TEST(DecoderProcess, MemoryIsLimited) { expect_end("memory", Code::kLimitExceeded, "more memory"); }
TEST(DecoderProcess, EndlessLoopIsEnded) { expect_end("spin", Code::kUnsupported, "too much processor time"); }
TEST(DecoderProcess, HangIsEnded) {
  expect_end("hang", Code::kUnsupported, "did not answer within", {.silence_ms = 1000});
  expect_end("slow", Code::kUnsupported, "did not answer within", {.all_ms = 500});
}
TEST(DecoderProcess, CrashIsASentence) {
  expect_end("crash", Code::kUnsupported, "was ended by signal 11");
  expect_end("exit", Code::kUnavailable, "syrinx-decode has ended with status 9");  // it has seen no file
}
TEST(DecoderProcess, AllProcessorTimeIsLimited) {
  expect_end("burn", Code::kUnsupported, "too much processor time", {.starved_times = 1000});
}
TEST(DecoderProcess, NonsenseEndsTheChild) {
  expect_end("nonsense", Code::kUnsupported, "broke the rules");
  expect_end("beyond", Code::kUnsupported, "broke the rules");
  expect_end("reads", Code::kUnsupported, "over and over");
}

TEST(DecoderProcess, MissingProgramIsNamed) {
  const auto child = DecoderProcess::start({"/nonexistent/syrinx-decode"});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, Code::kUnsupported);
  EXPECT_THAT(child.error().message, HasSubstr("syrinx-decode cannot be run: No such file"));
}

// At any moment: while the libraries load, before the order, in the middle of the sound.
TEST(DecoderProcess, KilledChildIsASentence) {
  std::mt19937 random(7);
  size_t heard = 0;
  for (int round = 0; round < 20; ++round) {
    DecoderProcess child = start("slow");
    const pid_t pid = child.pid();
    const auto delay = std::chrono::milliseconds(random() % 600);
    std::jthread killer([pid, delay] {
      std::this_thread::sleep_for(delay);
      ::kill(pid, SIGKILL);
    });
    const Outcome got = decode(child);
    ASSERT_FALSE(got.status);
    EXPECT_EQ(got.status.error().code, Code::kUnavailable);
    EXPECT_THAT(got.status.error().message, HasSubstr("was ended by signal 9"));
    EXPECT_LT(got.seconds, 5);
    heard += got.samples;
  }
  EXPECT_GT(heard, 0u);
}

TEST(DecoderProcess, ComputingIsNoSilence) {
  DecoderProcess child = start("compute");
  child.set_patience({.silence_ms = 200, .all_ms = 200, .starved_times = 1000});
  const Outcome got = decode(child);
  EXPECT_TRUE(got.status) << got.status.error().message;
  EXPECT_EQ(got.samples, 1000u);
  expect_end("compute", Code::kUnavailable, "too little of the machine's time", {.silence_ms = 50, .starved_times = 1});
}

TEST(DecoderProcess, UnwantedSoundEndsTheWait) {
  DecoderProcess child = start("hang");
  child.ask_while_waiting([] { return fail(Code::kCancelled, "is not wanted"); });
  const Outcome got = decode(child);
  ASSERT_FALSE(got.status);
  EXPECT_THAT(got.status.error().message, HasSubstr("is not wanted"));
  EXPECT_LT(got.seconds, 15);
}

// As a manager of services sends it to all processes of one that it stops.
TEST(DecoderProcess, ChildOutlivesSignalsToItsService) {
  DecoderProcess child = start("slow");
  const auto signal_all = [&child] {
    for (const int number : {SIGTERM, SIGHUP, SIGINT}) EXPECT_EQ(::kill(child.pid(), number), 0);
  };
  signal_all();  // before its libraries are loaded
  int blocks = 0;
  const Outcome got = decode(child, [&] {
    if (++blocks == 1) signal_all();
    return blocks < 20 ? Status() : fail(Code::kCancelled, "enough");
  });
  ASSERT_FALSE(got.status);
  EXPECT_EQ(got.status.error().message, "enough");
}

TEST(DecoderProcess, ChildIsFirstOutOfMemory) {
  DecoderProcess child = start("slow");
  std::string score;
  const Outcome got = decode(child, [&] {
    score = read_text("/proc/" + std::to_string(child.pid()) + "/oom_score_adj");
    return fail(Code::kCancelled, "enough");
  });
  ASSERT_FALSE(got.status);
  EXPECT_EQ(score, "1000\n") << got.status.error().message;
}

// A filter of calls for this thread and its children, as of a container that knows no such call.
void refuse_signals_by_handle() {
  std::array filter = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_send_signal, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
}

TEST(DecoderProcess, ChildEndsWithoutSignalByHandle) {
  std::jthread([] {
    refuse_signals_by_handle();
    expect_end("hang", Code::kUnsupported, "did not answer within", {.silence_ms = 100});
  }).join();
}

// In a program that waits for all children, or lets none become a zombie.
TEST(DecoderProcess, ForeignWaitsDoNoHarm) {
  DecoderProcess child = start("crash");
  ::signal(SIGCHLD, SIG_IGN);
  const Outcome got = decode(child);
  ::signal(SIGCHLD, SIG_DFL);
  ASSERT_FALSE(got.status);
  EXPECT_EQ(got.status.error().code, Code::kUnsupported);
  EXPECT_THAT(got.status.error().message, HasSubstr("its decoder has ended"));
}

}  // namespace
}  // namespace syrinx
