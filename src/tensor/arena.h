// Scratch memory planned ahead: sizes are added up first, the block is made once, and pieces are then handed out by
// moving a mark.  Nothing is allocated or freed by take(), which is what a step may call.
//
//   ArenaPlan plan;                         // the same calls, in the same order, as the code that takes
//   plan.add<float>(frames * width);
//   Arena arena(plan.bytes());
//   std::span<float> hidden = arena.take<float>(frames * width);
//
// Every piece starts at a multiple of 64 bytes.  Its content is whatever was there: zero in a fresh arena, the last
// user's values after rewind().  A piece is valid until rewind() passes it or the arena dies.  One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "base/check.h"
#include "tensor/buffer.h"

namespace syrinx {

inline constexpr size_t kArenaAlignment = 64;

// Bytes that `count` items take in an arena.
template <class T>
constexpr size_t arena_bytes(size_t count) {
  SYRINX_CHECK(count <= (std::numeric_limits<size_t>::max() - kArenaAlignment) / sizeof(T), "{} items", count);
  return (count * sizeof(T) + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

class ArenaPlan {
 public:
  template <class T>
  void add(size_t count) {
    const size_t more = arena_bytes<T>(count);
    SYRINX_CHECK(more <= std::numeric_limits<size_t>::max() - bytes_, "{} and {} bytes", bytes_, more);
    bytes_ += more;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

class Arena {
 public:
  Arena() = default;
  explicit Arena(size_t size_bytes) : memory_(size_bytes) {}

  // The next `count` items.  More than was planned is our bug and aborts.
  template <class T>
  std::span<T> take(size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kArenaAlignment);
    const size_t wanted = arena_bytes<T>(count);
    SYRINX_CHECK(wanted <= memory_.size() - used_, "{} bytes wanted, {} of {} used", wanted, used_, memory_.size());
    T* const data = reinterpret_cast<T*>(memory_.data() + used_);
    used_ += wanted;
    return {data, count};
  }

  // Gives back everything taken since used_bytes() was `mark`.
  void rewind(size_t mark = 0) {
    SYRINX_CHECK(mark <= used_, "mark {} used {}", mark, used_);
    used_ = mark;
  }
  // Makes room for `size_bytes` when there is less, between steps; every piece taken before becomes invalid.
  void grow(size_t size_bytes) {
    used_ = 0;
    if (size_bytes > memory_.size()) {
      memory_ = Buffer<std::byte>();  // first, so that both are never held at once
      memory_ = Buffer<std::byte>(size_bytes);
    }
  }

  size_t used_bytes() const { return used_; }
  size_t size_bytes() const { return memory_.size(); }

 private:
  Buffer<std::byte> memory_;
  size_t used_ = 0;
};

}  // namespace syrinx
