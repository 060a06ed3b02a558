// A bounded queue between exactly one producer thread and one consumer thread.  Nothing waits and nothing allocates
// after construction: push to a full queue returns false (or moves fewer), and the caller decides how to answer. Writes
// before a push are visible after the pop that takes it.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace syrinx {

template <class T>
class SpscQueue {
 public:
  // Holds at least `capacity` (>= 1) items; rounded up to a power of two.  T is default constructible.
  explicit SpscQueue(size_t capacity) : items_(std::bit_ceil(capacity)), mask_(items_.size() - 1) {
    SYRINX_CHECK(capacity >= 1);
  }
  SpscQueue(const SpscQueue&) = delete;
  SpscQueue& operator=(const SpscQueue&) = delete;

  size_t capacity() const { return items_.size(); }

  // Producer.  False when full: `item` is then untouched.
  bool try_push(T&& item) {
    if (free_slots(1) == 0) return false;
    const size_t tail = tail_.load(std::memory_order_relaxed);
    items_[tail & mask_] = std::move(item);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  bool try_push(const T& item) { return try_push(T(item)); }

  // Producer.  Copies as many as fit, in order; returns how many.
  size_t push_some(std::span<const T> items) {
    const size_t count = std::min(items.size(), free_slots(items.size()));
    const size_t tail = tail_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < count; ++i) items_[(tail + i) & mask_] = items[i];
    tail_.store(tail + count, std::memory_order_release);
    return count;
  }

  // Consumer.  False when empty.
  bool try_pop(T& item) {
    if (filled_slots(1) == 0) return false;
    const size_t head = head_.load(std::memory_order_relaxed);
    item = std::move(items_[head & mask_]);
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Consumer.  Moves out as many as there are, up to items.size(); returns how many.
  size_t pop_some(std::span<T> items) {
    const size_t count = std::min(items.size(), filled_slots(items.size()));
    const size_t head = head_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < count; ++i) items[i] = std::move(items_[(head + i) & mask_]);
    head_.store(head + count, std::memory_order_release);
    return count;
  }

  // Either side; the other may be moving it.
  size_t size() const {
    const size_t head = head_.load(std::memory_order_acquire);
    return std::min(tail_.load(std::memory_order_acquire) - head, capacity());
  }
  bool empty() const { return size() == 0; }

 private:
  // Each side keeps the last seen place of the other, so that the shared line is read only when that is not enough.
  size_t free_slots(size_t wanted) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (capacity() - (tail - seen_head_) < wanted) seen_head_ = head_.load(std::memory_order_acquire);
    return capacity() - (tail - seen_head_);
  }
  size_t filled_slots(size_t wanted) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (seen_tail_ - head < wanted) seen_tail_ = tail_.load(std::memory_order_acquire);
    return seen_tail_ - head;
  }

  std::vector<T> items_;
  const size_t mask_;
  alignas(64) std::atomic<size_t> head_{0};  // consumer's line
  size_t seen_tail_ = 0;
  alignas(64) std::atomic<size_t> tail_{0};  // producer's line
  size_t seen_head_ = 0;
};

}  // namespace syrinx
