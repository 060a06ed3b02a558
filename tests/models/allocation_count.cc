#include "allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "tensor/buffer_count.h"

namespace {
std::atomic<size_t> count{0};
std::atomic<size_t> before_refusal{0};
}  // namespace

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
void refuse_allocation(size_t n) { before_refusal = n; }
bool refuses_allocation() { return before_refusal != 0; }
}  // namespace syrinx

#if !defined(SYRINX_NOTHING_IS_COUNTED)
namespace {
bool is_refused() {
  size_t left = before_refusal.load();
  while (left > 0)
    if (before_refusal.compare_exchange_weak(left, left - 1)) return left == 1;
  return false;
}
}  // namespace

void* operator new(size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (is_refused()) throw std::bad_alloc();
  if (void* p = std::malloc(size != 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
// std::stable_sort() asks for its buffer so.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  count.fetch_add(1, std::memory_order_relaxed);
  return is_refused() ? nullptr : std::malloc(size != 0 ? size : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif
