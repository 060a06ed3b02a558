// Owning, 64-byte aligned memory.  Large buffers come straight from the system (mmap), so that their pages are zero,
// cost nothing until touched, and go back when the buffer dies.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace syrinx {

// Raw storage: `size_bytes` rounded up, zeroed, with 64 readable bytes behind the end.  Aborts only if the system has
// no address space left; sizes that come from a file are checked against limits before.
void* allocate_aligned(size_t size_bytes);
void free_aligned(void* data, size_t size_bytes);
// Asks the system for huge pages in the whole 2 MiB of a large buffer that is not yet written.  Weights that are
// streamed from memory are then read faster (docs/journal.md); what a stream fills little by little should not ask, as
// a huge page is in memory as a whole.
void prefer_huge_pages(void* data, size_t size_bytes);
// The whole pages inside this part of a large buffer leave memory; they are zeros when touched again.
void give_back_pages(void* data, size_t size_bytes);

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "the memory is zeroed, not constructed");

 public:
  Buffer() = default;
  explicit Buffer(size_t size) : data_(static_cast<T*>(allocate_aligned(bytes_of(size)))), size_(size) {}
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { free_aligned(data_, size_ * sizeof(T)); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  static size_t bytes_of(size_t size) {
    SYRINX_CHECK(size <= std::numeric_limits<size_t>::max() / 2 / sizeof(T), "{} items", size);
    return size * sizeof(T);
  }

  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace syrinx
