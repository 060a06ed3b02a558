#include "base/memory.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace syrinx {
namespace {

// The number of a line of /proc/self/status such as "VmHWM:     1234 kB".
uint64_t status_number(const char* key) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/status", "re"), &std::fclose);
  if (!file) return 0;
  const size_t length = std::strlen(key);
  char line[256];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::strncmp(line, key, length) != 0 || line[length] != ':') continue;
    uint64_t number = 0;
    for (const char* c = line + length + 1; *c != '\0' && *c != 'k'; ++c) {
      if (*c >= '0' && *c <= '9') number = number * 10 + static_cast<uint64_t>(*c - '0');
    }
    return number;
  }
  return 0;
}

uint64_t status_bytes(const char* key) { return status_number(key) * 1024; }

using Segments = std::vector<ElfW(Phdr)>;

// Relocations in code exist in memory alone.
bool relocates_code(const dl_phdr_info& object, const Segments& segments) {
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
        return true;
  }
  return false;
}

// Pages of all segments that are never written, as of `adds` and `subs`, the loader's counts of objects.
struct CodeRanges {
  decltype(dl_phdr_info::dlpi_adds) adds = 0, subs = 0;
  std::vector<std::span<std::byte>> pages;
};

void add_code(const dl_phdr_info& object, CodeRanges& code) {
  const Segments segments(object.dlpi_phdr, object.dlpi_phdr + object.dlpi_phnum);
  if (relocates_code(object, segments)) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0 || segment.p_filesz == 0) continue;
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr, first = begin / page * page;
    code.pages.emplace_back(reinterpret_cast<std::byte*>(first), begin + segment.p_filesz - first);
  }
}

int note_code(dl_phdr_info* object, size_t, void* code) {
  add_code(*object, *static_cast<CodeRanges*>(code));
  return 0;
}

// A callback of dl_iterate_phdr, which holds the loader's lock: nothing is unmapped meanwhile.  The ranges are kept, as
// the headers lie in pages that leave, and would come back with their neighbours.
int give_back_code(dl_phdr_info* object, size_t, void*) {
  static CodeRanges code;
  if (code.pages.empty() || code.adds != object->dlpi_adds || code.subs != object->dlpi_subs) {
    code = {.adds = object->dlpi_adds, .subs = object->dlpi_subs, .pages = {}};
    ::dl_iterate_phdr(note_code, &code);
  }
  // A hint: locked pages stay.
  for (const std::span<std::byte> pages : code.pages) ::madvise(pages.data(), pages.size(), MADV_DONTNEED);
  return 1;  // that was all of them
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

void give_back_unused_pages() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  // A debugger's breakpoints are written into the pages of code, in memory alone.
  if (status_number("TracerPid") == 0) ::dl_iterate_phdr(give_back_code, nullptr);
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
