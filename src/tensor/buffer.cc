#include "tensor/buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "base/check.h"
#include "tensor/buffer_count.h"

namespace syrinx {
namespace {
constexpr size_t kSystemThreshold = size_t{128} << 10;
constexpr size_t kSlack = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kPage = 4096;

std::atomic<size_t> count{0};

// The system's memory comes in whole pages, so that what lies around a mapping can be given back.
size_t padded(size_t size_bytes) {
  const size_t unit = size_bytes >= kSystemThreshold ? kPage : 64;
  return (size_bytes + kSlack + unit - 1) / unit * unit;
}

// Whole pages of zeros; from a huge page on they start at one.
void* map_pages(size_t bytes) {
  const size_t spare = bytes >= kHugePage ? kHugePage : 0;
  void* const data = ::mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SYRINX_CHECK(data != MAP_FAILED, "{} bytes", bytes);
  if (spare == 0) return data;
  auto* const begin = static_cast<std::byte*>(data);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(begin, before);
  if (before < spare) ::munmap(begin + before + bytes, spare - before);
  return begin + before;
}

}  // namespace

size_t buffer_count() { return count.load(std::memory_order_relaxed); }

void* allocate_aligned(size_t size_bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  const size_t bytes = padded(size_bytes);
  if (size_bytes >= kSystemThreshold) {
    SYRINX_CHECK(bytes >= size_bytes && bytes <= std::numeric_limits<size_t>::max() - kHugePage, "{} bytes",
                 size_bytes);
    return map_pages(bytes);
  }
  void* const data = std::aligned_alloc(64, bytes);
  SYRINX_CHECK(data != nullptr, "{} bytes", bytes);
  std::memset(data, 0, bytes);
  return data;
}

void free_aligned(void* data, size_t size_bytes) {
  if (data == nullptr) return;
  if (size_bytes >= kSystemThreshold) {
    ::munmap(data, padded(size_bytes));
  } else {
    std::free(data);
  }
}

void prefer_huge_pages(void* data, size_t size_bytes) {
  const size_t whole = size_bytes / kHugePage * kHugePage;
  // A hint: where the system has none to give, small pages serve as well.
  if (whole > 0 && reinterpret_cast<uintptr_t>(data) % kHugePage == 0) ::madvise(data, whole, MADV_HUGEPAGE);
}

void give_back_pages(void* data, size_t size_bytes) {
  const size_t before = (kPage - reinterpret_cast<uintptr_t>(data) % kPage) % kPage;
  if (size_bytes < before + kPage) return;
  ::madvise(static_cast<std::byte*>(data) + before, (size_bytes - before) / kPage * kPage, MADV_DONTNEED);
}

}  // namespace syrinx
