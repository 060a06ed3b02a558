#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>

#include "base/check.h"

namespace syrinx {
namespace {
constexpr size_t kSystemThreshold = size_t{1} << 20;
constexpr size_t kSlack = 64;
size_t padded(size_t size_bytes) { return (size_bytes + kSlack + 63) / 64 * 64; }
}  // namespace

void* allocate_aligned(size_t size_bytes) {
  const size_t bytes = padded(size_bytes);
  if (size_bytes >= kSystemThreshold) {
    void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SYRINX_CHECK(data != MAP_FAILED, "{} bytes", bytes);
    return data;
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

}  // namespace syrinx
