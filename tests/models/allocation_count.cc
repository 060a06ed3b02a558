#include "allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "tensor/buffer_count.h"

namespace {
std::atomic<size_t> count{0};
}

// ThreadSanitizer links operators of its own, which cannot be replaced: there only buffers are counted.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SYRINX_NOTHING_IS_COUNTED
#endif
#endif
#if defined(SYRINX_NOTHING_IS_COUNTED)
constexpr bool kCounted = false;
#else
constexpr bool kCounted = true;
#endif

namespace syrinx {
size_t allocation_count() { return count.load() + buffer_count(); }
bool allocations_are_counted() { return kCounted; }
}  // namespace syrinx

#if !defined(SYRINX_NOTHING_IS_COUNTED)
void* operator new(size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size != 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
// std::stable_sort() asks for its buffer so.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  count.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size != 0 ? size : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif
