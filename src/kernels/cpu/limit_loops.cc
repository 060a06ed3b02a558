#include "kernels/cpu/limit_loops.h"

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/limit_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent chains cover a latency of four to five cycles on two units, and fit sixteen registers.
float multiply_add_loop(size_t iterations) {
  const hn::ScalableTag<float> d;
  const auto m = hn::Set(d, 0.999f), c = hn::Set(d, 0.001f);
  // Different starts: equal chains would be one to the compiler.
  auto a0 = hn::Set(d, 1.0f), a1 = hn::Set(d, 1.1f), a2 = hn::Set(d, 1.2f), a3 = hn::Set(d, 1.3f);
  auto a4 = hn::Set(d, 1.4f), a5 = hn::Set(d, 1.5f), a6 = hn::Set(d, 1.6f), a7 = hn::Set(d, 1.7f);
  auto a8 = hn::Set(d, 1.8f), a9 = hn::Set(d, 1.9f), a10 = hn::Set(d, 2.0f), a11 = hn::Set(d, 2.1f);
  for (size_t i = 0; i < iterations; ++i) {
    a0 = hn::MulAdd(a0, m, c);
    a1 = hn::MulAdd(a1, m, c);
    a2 = hn::MulAdd(a2, m, c);
    a3 = hn::MulAdd(a3, m, c);
    a4 = hn::MulAdd(a4, m, c);
    a5 = hn::MulAdd(a5, m, c);
    a6 = hn::MulAdd(a6, m, c);
    a7 = hn::MulAdd(a7, m, c);
    a8 = hn::MulAdd(a8, m, c);
    a9 = hn::MulAdd(a9, m, c);
    a10 = hn::MulAdd(a10, m, c);
    a11 = hn::MulAdd(a11, m, c);
  }
  const auto s0 = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), s1 = hn::Add(hn::Add(a4, a5), hn::Add(a6, a7));
  return hn::GetLane(hn::Add(hn::Add(s0, s1), hn::Add(hn::Add(a8, a9), hn::Add(a10, a11))));
}

double multiply_add_operations() { return 2.0 * 12.0 * static_cast<double>(hn::Lanes(hn::ScalableTag<float>())); }

uint32_t read_loop(const uint32_t* data, size_t size_bytes, size_t prefetch_bytes) {
  const hn::ScalableTag<uint32_t> d;
  const size_t lanes = hn::Lanes(d), step = 8 * lanes;
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const uint32_t* const end = data + size_bytes / sizeof(uint32_t);
  const size_t ahead = prefetch_bytes / sizeof(uint32_t);
  for (const uint32_t* p = data; p + step <= end; p += step) {
    if (ahead != 0) {
      for (size_t i = 0; i < step; i += 16) hwy::Prefetch(p + ahead + i);
    }
    s0 = hn::Xor(s0, hn::Xor(hn::LoadU(d, p), hn::LoadU(d, p + lanes)));
    s1 = hn::Xor(s1, hn::Xor(hn::LoadU(d, p + 2 * lanes), hn::LoadU(d, p + 3 * lanes)));
    s2 = hn::Xor(s2, hn::Xor(hn::LoadU(d, p + 4 * lanes), hn::LoadU(d, p + 5 * lanes)));
    s3 = hn::Xor(s3, hn::Xor(hn::LoadU(d, p + 6 * lanes), hn::LoadU(d, p + 7 * lanes)));
  }
  return hn::GetLane(hn::Xor(hn::Xor(s0, s1), hn::Xor(s2, s3)));
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(multiply_add_loop);
HWY_EXPORT(multiply_add_operations);
HWY_EXPORT(read_loop);

PeakLoop f32_peak() {
  return {[](size_t iterations) { return HWY_DYNAMIC_DISPATCH(multiply_add_loop)(iterations); },
          HWY_DYNAMIC_DISPATCH(multiply_add_operations)()};
}

uint32_t read_all(const uint32_t* data, size_t size_bytes, size_t prefetch_bytes) {
  return HWY_DYNAMIC_DISPATCH(read_loop)(data, size_bytes, prefetch_bytes);
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
