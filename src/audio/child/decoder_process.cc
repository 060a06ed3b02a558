#include "audio/child/decoder_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace syrinx {
namespace {

constexpr int kSliceMs = 100;  // how often it is asked whether the sound is still wanted
constexpr double kEndMs = 5000;

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
  if (const char* const path = ::secure_getenv("LD_LIBRARY_PATH"); path != nullptr)
    kept.push_back(std::string("LD_LIBRARY_PATH=") + path);
  return kept;
}

Result<pid_t> spawn(std::vector<std::string>& arguments, int socket) {
  std::vector<std::string> environment = environment_of_child();
  const std::vector<char*> words = pointers(arguments), variables = pointers(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // The socket first: it may lie where standard streams go.
  posix_spawn_file_actions_adddup2(&actions, socket, kDecodeSocket);
  for (const int standard : {0, 1, 2}) posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
#if __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&actions, kDecodeSocket + 1);  // else the program does so
#endif
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t blocked, all;
  sigfillset(&all);
  // A manager that stops a service sends these to all of its processes; the parent lets its answers end, for which it
  // needs the child.
  sigemptyset(&blocked);
  for (const int number : {SIGTERM, SIGHUP, SIGINT}) sigaddset(&blocked, number);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words[0], &actions, &attributes, words.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  const bool is_short = error == EAGAIN || error == ENOMEM;
  return fail(is_short ? Code::kUnavailable : Code::kUnsupported, "the program syrinx-decode cannot be run: {}",
              std::strerror(error));
}

Error cause_of(const siginfo_t& end) {
  if (end.si_code == CLD_EXITED) return {Code::kUnsupported, fmt::format("has ended with status {}", end.si_status)};
  if (end.si_status == SIGPROF || end.si_status == SIGXCPU)
    return {Code::kUnsupported, "took too much processor time for it and was ended"};
  // No limit of its own ends it so: the system did, for want of memory, or a person.
  const bool from_outside = end.si_status == SIGKILL || end.si_status == SIGTERM;
  return {from_outside ? Code::kUnavailable : Code::kUnsupported, fmt::format("was ended by signal {}", end.si_status)};
}

// By its handle where there is one: another part of a foreign program may wait for all children, and a number that was
// given back may be another process by now.
void kill_child(pid_t pid, int handle) {
  if (handle >= 0 && (::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0) == 0 || errno == ESRCH)) return;
  ::kill(pid, SIGKILL);  // no handles here, or a filter of calls that lacks this one
}

// False: it cannot be told, or not within the time, as of a process that waits for a disk: then it stays a zombie.
bool wait_for_end(pid_t pid, int handle, siginfo_t& end) {
  const Stopwatch watch;
  for (bool by_handle = handle >= 0;;) {
    end.si_pid = 0;
    const int waited = by_handle ? ::waitid(P_PIDFD, static_cast<id_t>(handle), &end, WEXITED | WNOHANG)
                                 : ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG);
    if (waited == 0 && end.si_pid != 0) return true;
    if (waited < 0 && errno == EINVAL && by_handle) {  // Linux before 5.4
      by_handle = false;
    } else if ((waited < 0 && errno != EINTR) || watch.elapsed_ms() > kEndMs) {
      return false;
    } else {
      pollfd ended{handle, POLLIN, 0};
      ::poll(&ended, 1, by_handle ? kSliceMs : 1);
    }
  }
}

std::string read_of_process(pid_t pid, const char* name) {
  const std::string path = fmt::format("/proc/{}/{}", pid, name);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  const ssize_t got = file.value() < 0 ? 0 : ::read(file.value(), text.data(), text.size());
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

bool is_runnable(pid_t pid) {  // proc(5): behind the name, which ends with the last bracket
  const std::string text = read_of_process(pid, "stat");
  const size_t bracket = text.rfind(") ");
  return bracket != std::string::npos && text.compare(bracket, 3, ") R") == 0;
}

// Time that a process has computed, or would have, had the machine had time for it.
int64_t busy_ms(pid_t pid) {
  const std::string text = read_of_process(pid, "schedstat");  // of its one thread
  char* next = nullptr;
  uint64_t ran_ns = std::strtoull(text.c_str(), &next, 10);
  const uint64_t waited_ns = std::strtoull(next, nullptr, 10);
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &time) == 0)
    ran_ns = std::max(ran_ns, static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec));
  return static_cast<int64_t>((ran_ns + waited_ns) / 1000000);
}

}  // namespace

Result<DecoderProcess> DecoderProcess::start(std::vector<std::string> arguments) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(Code::kUnavailable, "there is no socket for a decoder: {}", std::strerror(errno));
  Descriptor ours(ends[0]), theirs(ends[1]);
  SYRINX_TRY(const pid_t pid, spawn(arguments, theirs.value()));
  return DecoderProcess(pid, Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), std::move(ours));
}

DecoderProcess::DecoderProcess(DecoderProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      handle_(std::move(other.handle_)),
      socket_(std::move(other.socket_)),
      patience_(other.patience_),
      ask_(std::move(other.ask_)),
      waited_ms_(other.waited_ms_),
      busy_before_ms_(other.busy_before_ms_),
      has_answered_(other.has_answered_) {}

DecoderProcess::~DecoderProcess() { static_cast<void>(end()); }

bool DecoderProcess::is_running() const {
  pollfd state{socket_.value(), 0, 0};
  return pid_ >= 0 && ::poll(&state, 1, 0) == 0;
}

bool DecoderProcess::has_answer_within(int ms) const {
  pollfd state{socket_.value(), POLLIN, 0};
  return ::poll(&state, 1, ms) > 0;
}

Error DecoderProcess::end() {
  const pid_t pid = std::exchange(pid_, -1);
  Error untold{Code::kUnsupported, "has ended"};
  if (pid < 0) return untold;
  socket_ = Descriptor(-1);  // which ends it, too, where no signal does
  kill_child(pid, handle_.value());
  siginfo_t end{};
  return wait_for_end(pid, handle_.value(), end) ? cause_of(end) : untold;
}

Status DecoderProcess::ended() { return tl::unexpected(end()); }

Status DecoderProcess::ask() {
  if (!ask_ || since_asked_.elapsed_ms() < kSliceMs) return {};
  since_asked_.restart();
  return ask_();
}

// Time in which the child could not compute for want of a processor is no silence of it, up to a limit.
Status DecoderProcess::check_patience(int64_t elapsed_ms, std::optional<int64_t> busy_at_ms) {
  const int64_t silence_ms = has_answered_ ? patience_.silence_ms : patience_.start_ms;
  const int64_t all_ms = has_answered_ ? waited_ms_ + elapsed_ms : 0;
  if (elapsed_ms <= silence_ms && all_ms <= patience_.all_ms) return {};
  const int64_t busy = busy_ms(pid_);
  const bool waits = is_runnable(pid_);  // which is counted when it ends
  const bool is_silent = !waits && elapsed_ms - (busy - busy_at_ms.value_or(busy)) > silence_ms;
  const bool is_slow = !waits && all_ms - (busy - busy_before_ms_) > patience_.all_ms;
  const bool has_waited =
      elapsed_ms / patience_.starved_times > silence_ms || all_ms / patience_.starved_times > patience_.all_ms;
  if (!is_silent && !is_slow && !has_waited) return {};
  static_cast<void>(end());
  const int64_t seconds = std::max(all_ms, elapsed_ms) / 1000;
  if (!is_silent && !is_slow)
    return fail(Code::kUnavailable, "got too little of the machine's time within {} s and was ended", seconds);
  return fail(has_answered_ ? Code::kUnsupported : Code::kUnavailable, "did not answer within {} s and was ended",
              seconds);
}

Status DecoderProcess::wait_for(short events) {
  const Stopwatch watch;
  std::optional<int64_t> busy_at_ms;  // at the end of the first slice, less that
  for (bool is_ready = false; !is_ready;) {
    pollfd ready{socket_.value(), events, 0};
    const int count = ::poll(&ready, 1, kSliceMs);
    if (count < 0 && errno != EINTR) return fail(Code::kUnavailable, "cannot be waited for: {}", std::strerror(errno));
    is_ready = count > 0;
    SYRINX_TRY_VOID(ask());
    const auto elapsed_ms = static_cast<int64_t>(watch.elapsed_ms());
    if (!is_ready && !busy_at_ms) busy_at_ms = busy_ms(pid_) - elapsed_ms;
    SYRINX_TRY_VOID(check_patience(is_ready ? 0 : elapsed_ms, busy_at_ms));
  }
  if (has_answered_) waited_ms_ += static_cast<int64_t>(watch.elapsed_ms());
  return {};
}

Status DecoderProcess::receive(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket_.value(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
    if (got > 0 && !std::exchange(has_answered_, true)) busy_before_ms_ = busy_ms(pid_);
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
