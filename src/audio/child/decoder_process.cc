#include "audio/child/decoder_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace syrinx {
namespace {

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> found;
  found.reserve(strings.size() + 1);
  for (std::string& text : strings) found.push_back(text.data());
  found.push_back(nullptr);
  return found;
}

// Nothing of ours but where the loader looks for libraries: keys and the like are none of the child's affair.
std::vector<std::string> environment_of_child() {
  std::vector<std::string> kept;
  if (const char* const path = std::getenv("LD_LIBRARY_PATH"); path != nullptr)
    kept.push_back(std::string("LD_LIBRARY_PATH=") + path);
  return kept;
}

Result<pid_t> spawn(std::vector<std::string>& arguments, int socket) {
  std::vector<std::string> environment = environment_of_child();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // The socket first: it may lie where standard streams go.
  posix_spawn_file_actions_adddup2(&actions, socket, kDecodeSocket);
  for (const int standard : {0, 1, 2}) posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, arguments[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                  pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  const bool is_short = error == EAGAIN || error == ENOMEM;
  return fail(is_short ? Code::kIo : Code::kUnsupported, "the program syrinx-decode cannot be run: {}",
              std::strerror(error));
}

std::string cause_of(const siginfo_t& end) {
  if (end.si_code == CLD_EXITED) return fmt::format("has ended with status {}", end.si_status);
  if (end.si_status == SIGPROF || end.si_status == SIGXCPU) return "took too much processor time for it and was ended";
  return fmt::format("was ended by signal {}", end.si_status);
}

}  // namespace

Result<DecoderProcess> DecoderProcess::start(std::vector<std::string> arguments) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(Code::kIo, "there is no socket for a decoder: {}", std::strerror(errno));
  Descriptor ours(ends[0]), theirs(ends[1]);
  SYRINX_TRY(const pid_t pid, spawn(arguments, theirs.value()));
  return DecoderProcess(pid, Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), std::move(ours));
}

DecoderProcess::DecoderProcess(DecoderProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      handle_(std::move(other.handle_)),
      socket_(std::move(other.socket_)),
      patience_(other.patience_),
      waited_ms_(other.waited_ms_),
      has_answered_(other.has_answered_) {}

DecoderProcess::~DecoderProcess() { static_cast<void>(end()); }

bool DecoderProcess::is_running() const {
  pollfd state{socket_.value(), 0, 0};
  return pid_ >= 0 && ::poll(&state, 1, 0) == 0;
}

// By its handle where there is one: another part of a foreign program may wait for all children, and a number that was
// given back may be another process by now.
std::string DecoderProcess::end() {
  const pid_t pid = std::exchange(pid_, -1);
  if (pid < 0) return "has ended";
  const int handle = handle_.value();
  if (handle >= 0)
    ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0);
  else
    ::kill(pid, SIGKILL);
  siginfo_t end{};
  int waited = 0;
  do
    waited = handle >= 0 ? ::waitid(P_PIDFD, static_cast<id_t>(handle), &end, WEXITED)
                         : ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED);
  while (waited < 0 && errno == EINTR);
  return waited == 0 ? cause_of(end) : "has ended";
}

Status DecoderProcess::ended() { return fail(Code::kUnsupported, "{}", end()); }

Status DecoderProcess::wait_for(short events) {
  const Stopwatch watch;
  for (;;) {
    const int64_t elapsed_ms = static_cast<int64_t>(watch.elapsed_ms());
    const int64_t most_ms =
        has_answered_ ? std::min(patience_.silence_ms, patience_.all_ms - waited_ms_) : patience_.start_ms;
    const int64_t left_ms = most_ms - elapsed_ms;
    if (left_ms <= 0) {
      static_cast<void>(end());
      return fail(Code::kUnsupported, "did not answer within {} s and was ended",
                  (has_answered_ ? waited_ms_ + elapsed_ms : elapsed_ms) / 1000);
    }
    pollfd ready{socket_.value(), events, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(left_ms));
    if (count < 0 && errno != EINTR) return fail(Code::kIo, "cannot be waited for: {}", std::strerror(errno));
    if (count <= 0) continue;
    if (has_answered_) waited_ms_ += static_cast<int64_t>(watch.elapsed_ms());
    return {};
  }
}

Status DecoderProcess::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket_.value(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
    has_answered_ = has_answered_ || got > 0;
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) return ended();
    SYRINX_TRY_VOID(wait_for(POLLIN));
  }
  return {};
}

Status DecoderProcess::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.value(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) bytes = bytes.subspan(static_cast<size_t>(sent));
    if (sent > 0 || (sent < 0 && errno == EINTR)) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return ended();
    SYRINX_TRY_VOID(wait_for(POLLOUT));
  }
  return {};
}

}  // namespace syrinx
