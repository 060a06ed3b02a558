// Preloaded into a program, moves its wall clock while it runs: by as many seconds as the first eight bytes of the file
// say that WALL_CLOCK_AHEAD names.  The monotonic clock, and so what waits by it, stays as it is; who waits for a time
// of the wall clock waits as long as he would if it had been set.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

// Nothing before this library is ready.
const volatile int64_t* g_ahead_s = nullptr;

__attribute__((constructor)) void open_file() {
  const char* const path = getenv("WALL_CLOCK_AHEAD");
  const int file = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) abort();
  void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) abort();
  g_ahead_s = static_cast<const volatile int64_t*>(mapped);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* at) noexcept {
  const long status = syscall(SYS_clock_gettime, clock, at);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && g_ahead_s != nullptr)
    at->tv_sec += *g_ahead_s;
  return static_cast<int>(status);
}

extern "C" int gettimeofday(timeval* at, void* /*zone*/) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* at) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (at != nullptr) *at = now.tv_sec;
  return now.tv_sec;
}
