// View<T, Rank>: a borrowed pointer with extents and strides (in elements), passed by value and never stored past a
// call.  The last stride is 1 for every view that a kernel takes.  Buffers own (buffer.h), views borrow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/check.h"

namespace syrinx {

template <class T, size_t Rank>
class View {
 public:
  View() = default;
  View(T* data, std::array<size_t, Rank> extents) : data_(data), extents_(extents) {
    size_t stride = 1;
    for (size_t i = Rank; i-- > 0;) {
      strides_[i] = stride;
      stride *= extents[i];
    }
  }
  View(T* data, std::array<size_t, Rank> extents, std::array<size_t, Rank> strides)
      : data_(data), extents_(extents), strides_(strides) {}
  // A view of mutable values is a view of constant ones.
  operator View<const T, Rank>() const requires(!std::is_const_v<T>) { return {data_, extents_, strides_}; }

  T* data() const { return data_; }
  size_t extent(size_t axis) const { return extents_[axis]; }
  size_t stride(size_t axis) const { return strides_[axis]; }
  size_t size() const {
    size_t n = 1;
    for (size_t e : extents_) n *= e;
    return n;
  }

  // Row i of the first axis: a pointer to its first element.
  T* row(size_t i) const {
    SYRINX_DCHECK(i < extents_[0], "row {} of {}", i, extents_[0]);
    return data_ + i * strides_[0];
  }
  template <class... Index>
  requires(sizeof...(Index) == Rank) T& operator()(Index... index) const {
    const std::array<size_t, Rank> at{static_cast<size_t>(index)...};
    size_t offset = 0;
    for (size_t i = 0; i < Rank; ++i) {
      SYRINX_DCHECK(at[i] < extents_[i], "index {} of {} on axis {}", at[i], extents_[i], i);
      offset += at[i] * strides_[i];
    }
    return data_[offset];
  }

 private:
  T* data_ = nullptr;
  std::array<size_t, Rank> extents_{};
  std::array<size_t, Rank> strides_{};
};

}  // namespace syrinx
