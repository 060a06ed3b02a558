// Memory that is read now and then, so that it stays where it can be read fast.  A hypervisor takes pages of 4 kB away
// that its guest has not touched for some seconds, which the guest's kernel does not see: no page fault is counted, and
// 160000 pages of weights take 80 to 200 ms longer when they are next read.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace syrinx {

// Makes a run of memory one of those that are read.  Any thread.
class KeptPages {
 public:
  KeptPages() = default;
  // Borrowed until this ends, which waits for a read of some 2 MB at most; nobody writes it meanwhile.
  explicit KeptPages(std::span<const std::byte> bytes);
  KeptPages(KeptPages&& other) noexcept;
  KeptPages& operator=(KeptPages&& other) noexcept;
  KeptPages(const KeptPages&) = delete;
  KeptPages& operator=(const KeptPages&) = delete;
  ~KeptPages();

 private:
  void drop();
  std::span<const std::byte> bytes_;
};

struct PagesRead {
  size_t pages = 0;
  double worked_ms = 0;  // without pauses
};
// A byte of each page of all runs, those that come or go meanwhile left out or not, with a pause behind each 2 MB,
// until `stop` is true (null: to the end).
PagesRead read_kept_pages(const std::atomic<bool>* stop = nullptr);

}  // namespace syrinx
