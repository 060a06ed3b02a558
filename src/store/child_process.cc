#include "store/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

extern char** environ;

namespace syrinx {
namespace {

constexpr size_t kKeptOutputBytes = 4096;
constexpr int kTickMs = 100;
constexpr int kPatienceMs = 2000;  // between asking a program to end and ending it

// Our environment with the named variables replaced.
std::vector<std::string> merged_environment(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(changes.begin(), changes.end(), [&name](const auto& c) { return c.first == name; });
    if (!replaced) merged.push_back(text);
  }
  for (const auto& change : changes) merged.push_back(change.first + "=" + change.second);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> found;
  found.reserve(strings.size() + 1);
  for (auto& text : strings) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

// Takes what the pipe holds now; keeps the tail.
void drain(int descriptor, std::string& output) {
  char block[4096];
  ssize_t got = 0;
  while ((got = ::read(descriptor, block, sizeof block)) > 0) {
    output.append(block, static_cast<size_t>(got));
    if (output.size() > kKeptOutputBytes) output.erase(0, output.size() - kKeptOutputBytes);
  }
}

int status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// Ends the whole group: politely, then not.
void stop_group(pid_t child) {
  ::kill(-child, SIGTERM);
  for (int waited_ms = 0; waited_ms < kPatienceMs; waited_ms += 20) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) != 0) {
      ::kill(-child, SIGKILL);  // what it started and left behind
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// `output` becomes the child's standard output and error.
Result<pid_t> spawn(const ChildProcess& child, int output) {
  std::vector<std::string> arguments = child.arguments;
  std::vector<std::string> environment = merged_environment(child.environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawn_file_actions_addchdir_np(&actions, child.folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, standard;
  sigemptyset(&none);
  sigemptyset(&standard);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) sigaddset(&standard, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &standard);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, arguments[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                   pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  return fail(error == ENOENT ? Code::kNotFound : Code::kIo, "cannot run {}: {}", arguments[0], std::strerror(error));
}

}  // namespace

Result<ChildResult> run_child(const ChildProcess& child) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(Code::kIo, "cannot make a pipe: {}", std::strerror(errno));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const auto started = spawn(child, ends[1]);
  ::close(ends[1]);
  if (!started) {
    ::close(ends[0]);
    return tl::unexpected(started.error());
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(child.timeout_ms);
  ChildResult result;
  Status verdict;
  int wait_status = 0;
  while (::waitpid(*started, &wait_status, WNOHANG) == 0) {
    pollfd readable{ends[0], POLLIN, 0};
    // A closed pipe is always ready: sleep instead, until the program ends as well.
    if (::poll(&readable, 1, kTickMs) > 0 && (readable.revents & POLLIN) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kTickMs / 5));
    }
    drain(ends[0], result.output);
    if (child.cancel != nullptr && child.cancel->load()) {
      verdict = fail(Code::kCancelled, "stopped while {} was running", child.arguments[0]);
    } else if (std::chrono::steady_clock::now() > deadline) {
      verdict = fail(Code::kUnavailable, "{} was not done after {} s and was stopped", child.arguments[0],
                     child.timeout_ms / 1000);
    } else if (child.on_tick) {
      verdict = child.on_tick();
    }
    if (verdict) continue;
    stop_group(*started);
    ::close(ends[0]);
    return tl::unexpected(verdict.error());
  }
  drain(ends[0], result.output);
  ::close(ends[0]);
  result.exit_status = status_of(wait_status);
  return result;
}

}  // namespace syrinx
