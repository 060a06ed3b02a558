#include "audio/child/decoder_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <random>
#include <thread>

#include "audio/child/decode_talk.h"

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

Outcome decode(DecoderProcess& child) {
  const std::string file(1000, 'a'), name = "me";
  Outcome outcome;
  const SoundLimits limits;
  const SoundSink sink{.begin = [](int, std::optional<uint64_t>) { return Status(); },
                       .add =
                           [&](std::span<const float> samples) {
                             outcome.samples += samples.size();
                             return Status();
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
  expect_end("slow", Code::kUnsupported, "did not answer within", {.all_ms = 2000});
}
TEST(DecoderProcess, CrashIsASentence) {
  expect_end("crash", Code::kUnsupported, "was ended by signal 11");
  expect_end("exit", Code::kUnsupported, "ended with status 9");
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
    EXPECT_EQ(got.status.error().code, Code::kUnsupported);
    EXPECT_THAT(got.status.error().message, HasSubstr("was ended by signal 9"));
    EXPECT_LT(got.seconds, 5);
    heard += got.samples;
  }
  EXPECT_GT(heard, 0u);
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
