#include "base/memory.h"

#include <malloc.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>

namespace syrinx {
namespace {

// A line of /proc/self/status such as "VmHWM:     1234 kB".
uint64_t status_bytes(const char* key) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/status", "re"), &std::fclose);
  if (!file) return 0;
  const size_t length = std::strlen(key);
  char line[256];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::strncmp(line, key, length) != 0 || line[length] != ':') continue;
    uint64_t kib = 0;
    for (const char* c = line + length + 1; *c != '\0' && *c != 'k'; ++c) {
      if (*c >= '0' && *c <= '9') kib = kib * 10 + static_cast<uint64_t>(*c - '0');
    }
    return kib * 1024;
  }
  return 0;
}

}  // namespace

uint64_t peak_rss_bytes() { return status_bytes("VmHWM"); }
uint64_t current_rss_bytes() { return status_bytes("VmRSS"); }
uint64_t virtual_memory_bytes() { return status_bytes("VmSize"); }

double process_cpu_seconds() {
  struct timespec used {};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

uint64_t total_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
}

// Setting this threshold, to glibc's own first one, is what stops it from growing with what is freed.
void give_back_what_is_freed() {
#ifdef __GLIBC__
  constexpr int kMappedFromBytes = 128 << 10;
  mallopt(M_MMAP_THRESHOLD, kMappedFromBytes);
#endif
}

Result<uint64_t> free_disk_bytes(const std::string& path) {
  std::filesystem::path place = path.empty() ? "." : path;
  struct statvfs info {};
  while (::statvfs(place.c_str(), &info) != 0) {
    const int error = errno;
    const auto parent = place.has_parent_path() ? place.parent_path() : std::filesystem::path(".");
    if ((error != ENOENT && error != ENOTDIR) || parent == place) {
      return fail(Code::kIo, "cannot ask for the free space at '{}': {}", path, std::strerror(error));
    }
    place = parent;
  }
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace syrinx
