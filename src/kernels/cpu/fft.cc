// A real transform of N points is a complex one of M = N / 2 on pairs of samples, and one pass that takes the two
// interleaved halves apart.  The complex one is Stockham's: each pass of radix 2, 3, 4 or 5 reads one buffer and writes
// the other in order, and needs no bit reversal.  Each element is a vector of frames ("lanes").
#include "kernels/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fft.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef SYRINX_KERNELS_CPU_FFT_ONCE_
#define SYRINX_KERNELS_CPU_FFT_ONCE_
namespace syrinx::kernels {
namespace {
// The longest vector there can be (SVE, 2048 bits): the size of the scratch does not depend on the target.
constexpr size_t kMaxLanes = 64;
}  // namespace
}  // namespace syrinx::kernels
#endif  // SYRINX_KERNELS_CPU_FFT_ONCE_

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, kMaxLanes>;

// Complex number i of a buffer: its real parts at 2 i lanes, its imaginary ones behind them.
HWY_INLINE const float* re_of(const float* buffer, size_t i, size_t lanes) { return buffer + 2 * i * lanes; }
HWY_INLINE float* re_of(float* buffer, size_t i, size_t lanes) { return buffer + 2 * i * lanes; }

// out[i] = (re, im) * (c, s).
template <class V>
HWY_INLINE void store_turned(Tag d, V re, V im, float c, float s, float* out) {
  const auto cv = hn::Set(d, c), sv = hn::Set(d, s);
  hn::StoreU(hn::NegMulAdd(im, sv, hn::Mul(re, cv)), d, out);
  hn::StoreU(hn::MulAdd(im, cv, hn::Mul(re, sv)), d, out + hn::Lanes(d));
}

// One pass: element (p, q) of input part j is in[q + stride (p + j m)], of output part k is out[q + stride (radix p +
// k)], turned by e^(-2 pi i p k / (radix m)); the table has N = 2 radix m stride turns.
struct Pass {
  const float* in;
  float* out;
  const float* cosine;
  const float* sine;
  size_t radix, m, stride, lanes, table_step;
  float sign;  // -1 for the forward transform (the table's own sense is +), 1 for the inverse
  const float* part(size_t p, size_t q, size_t j) const { return re_of(in, q + stride * (p + j * m), lanes); }
  float* result(size_t p, size_t q, size_t k) const { return re_of(out, q + stride * (radix * p + k), lanes); }
};

HWY_INLINE void radix2(const Pass& s, size_t p, size_t q) {
  const Tag d;
  const size_t w = p * s.table_step;
  const auto a = hn::LoadU(d, s.part(p, q, 0)), ai = hn::LoadU(d, s.part(p, q, 0) + s.lanes);
  const auto b = hn::LoadU(d, s.part(p, q, 1)), bi = hn::LoadU(d, s.part(p, q, 1) + s.lanes);
  store_turned(d, hn::Add(a, b), hn::Add(ai, bi), 1.0f, 0.0f, s.result(p, q, 0));
  store_turned(d, hn::Sub(a, b), hn::Sub(ai, bi), s.cosine[w], s.sign * s.sine[w], s.result(p, q, 1));
}

HWY_INLINE void radix3(const Pass& s, size_t p, size_t q) {
  const Tag d;
  const auto half = hn::Set(d, 0.5f), root = hn::Set(d, 0.866025404f * s.sign);
  const size_t w = p * s.table_step;
  const auto a = hn::LoadU(d, s.part(p, q, 0)), ai = hn::LoadU(d, s.part(p, q, 0) + s.lanes);
  const auto b = hn::LoadU(d, s.part(p, q, 1)), bi = hn::LoadU(d, s.part(p, q, 1) + s.lanes);
  const auto c = hn::LoadU(d, s.part(p, q, 2)), ci = hn::LoadU(d, s.part(p, q, 2) + s.lanes);
  const auto t = hn::Add(b, c), ti = hn::Add(bi, ci);
  const auto u = hn::Mul(hn::Sub(b, c), root), ui = hn::Mul(hn::Sub(bi, ci), root);
  const auto e = hn::NegMulAdd(half, t, a), ei = hn::NegMulAdd(half, ti, ai);
  store_turned(d, hn::Add(a, t), hn::Add(ai, ti), 1.0f, 0.0f, s.result(p, q, 0));
  store_turned(d, hn::Sub(e, ui), hn::Add(ei, u), s.cosine[w], s.sign * s.sine[w], s.result(p, q, 1));
  store_turned(d, hn::Add(e, ui), hn::Sub(ei, u), s.cosine[2 * w], s.sign * s.sine[2 * w], s.result(p, q, 2));
}

HWY_INLINE void radix4(const Pass& s, size_t p, size_t q) {
  const Tag d;
  const auto sign = hn::Set(d, s.sign);
  const size_t w = p * s.table_step;
  const auto a = hn::LoadU(d, s.part(p, q, 0)), ai = hn::LoadU(d, s.part(p, q, 0) + s.lanes);
  const auto b = hn::LoadU(d, s.part(p, q, 1)), bi = hn::LoadU(d, s.part(p, q, 1) + s.lanes);
  const auto c = hn::LoadU(d, s.part(p, q, 2)), ci = hn::LoadU(d, s.part(p, q, 2) + s.lanes);
  const auto e = hn::LoadU(d, s.part(p, q, 3)), ei = hn::LoadU(d, s.part(p, q, 3) + s.lanes);
  const auto ac = hn::Add(a, c), aci = hn::Add(ai, ci), a_c = hn::Sub(a, c), a_ci = hn::Sub(ai, ci);
  const auto be = hn::Add(b, e), bei = hn::Add(bi, ei);
  // (b - e) times the sign's i
  const auto j = hn::Neg(hn::Mul(hn::Sub(bi, ei), sign)), ji = hn::Mul(hn::Sub(b, e), sign);
  store_turned(d, hn::Add(ac, be), hn::Add(aci, bei), 1.0f, 0.0f, s.result(p, q, 0));
  store_turned(d, hn::Add(a_c, j), hn::Add(a_ci, ji), s.cosine[w], s.sign * s.sine[w], s.result(p, q, 1));
  store_turned(d, hn::Sub(ac, be), hn::Sub(aci, bei), s.cosine[2 * w], s.sign * s.sine[2 * w], s.result(p, q, 2));
  store_turned(d, hn::Sub(a_c, j), hn::Sub(a_ci, ji), s.cosine[3 * w], s.sign * s.sine[3 * w], s.result(p, q, 3));
}

HWY_INLINE void radix5(const Pass& s, size_t p, size_t q) {
  const Tag d;
  const auto c1 = hn::Set(d, 0.309016994f), c2 = hn::Set(d, -0.809016994f);
  const auto s1 = hn::Set(d, 0.951056516f * s.sign), s2 = hn::Set(d, 0.587785252f * s.sign);
  const size_t w = p * s.table_step;
  const auto a = hn::LoadU(d, s.part(p, q, 0)), ai = hn::LoadU(d, s.part(p, q, 0) + s.lanes);
  const auto b = hn::LoadU(d, s.part(p, q, 1)), bi = hn::LoadU(d, s.part(p, q, 1) + s.lanes);
  const auto c = hn::LoadU(d, s.part(p, q, 2)), ci = hn::LoadU(d, s.part(p, q, 2) + s.lanes);
  const auto e = hn::LoadU(d, s.part(p, q, 3)), ei = hn::LoadU(d, s.part(p, q, 3) + s.lanes);
  const auto f = hn::LoadU(d, s.part(p, q, 4)), fi = hn::LoadU(d, s.part(p, q, 4) + s.lanes);
  const auto bf = hn::Add(b, f), bfi = hn::Add(bi, fi), b_f = hn::Sub(b, f), b_fi = hn::Sub(bi, fi);
  const auto ce = hn::Add(c, e), cei = hn::Add(ci, ei), c_e = hn::Sub(c, e), c_ei = hn::Sub(ci, ei);
  const auto x = hn::MulAdd(c1, bf, hn::MulAdd(c2, ce, a)), xi = hn::MulAdd(c1, bfi, hn::MulAdd(c2, cei, ai));
  const auto y = hn::MulAdd(c2, bf, hn::MulAdd(c1, ce, a)), yi = hn::MulAdd(c2, bfi, hn::MulAdd(c1, cei, ai));
  const auto u = hn::MulAdd(s1, b_f, hn::Mul(s2, c_e)), ui = hn::MulAdd(s1, b_fi, hn::Mul(s2, c_ei));
  const auto v = hn::NegMulAdd(s1, c_e, hn::Mul(s2, b_f)), vi = hn::NegMulAdd(s1, c_ei, hn::Mul(s2, b_fi));
  store_turned(d, hn::Add(a, hn::Add(bf, ce)), hn::Add(ai, hn::Add(bfi, cei)), 1.0f, 0.0f, s.result(p, q, 0));
  store_turned(d, hn::Sub(x, ui), hn::Add(xi, u), s.cosine[w], s.sign * s.sine[w], s.result(p, q, 1));
  store_turned(d, hn::Sub(y, vi), hn::Add(yi, v), s.cosine[2 * w], s.sign * s.sine[2 * w], s.result(p, q, 2));
  store_turned(d, hn::Add(y, vi), hn::Sub(yi, v), s.cosine[3 * w], s.sign * s.sine[3 * w], s.result(p, q, 3));
  store_turned(d, hn::Add(x, ui), hn::Sub(xi, u), s.cosine[4 * w], s.sign * s.sine[4 * w], s.result(p, q, 4));
}

template <class Butterfly>
HWY_INLINE void run_pass(const Pass& s, Butterfly butterfly) {
  for (size_t p = 0; p < s.m; ++p) {
    for (size_t q = 0; q < s.stride; ++q) butterfly(s, p, q);
  }
}

// Complex transform of M points in `a`; `b` is as large.  Returns where the result stands, the other being free.
float* complex_transform(const RealFft::Tables& t, size_t size, float sign, float* a, float* b) {
  const size_t points = size / 2;
  Pass pass{a, b, t.cosine.data(), t.sine.data(), 1, points, 1, hn::Lanes(Tag()), 0, sign};
  for (const size_t radix : t.radices) {
    pass.radix = radix;
    pass.table_step = size / pass.m;  // of a table of N turns, for a transform of m = radix * m' points
    pass.m /= radix;
    if (radix == 2) run_pass(pass, [](const Pass& s, size_t p, size_t q) HWY_ATTR { radix2(s, p, q); });
    if (radix == 3) run_pass(pass, [](const Pass& s, size_t p, size_t q) HWY_ATTR { radix3(s, p, q); });
    if (radix == 4) run_pass(pass, [](const Pass& s, size_t p, size_t q) HWY_ATTR { radix4(s, p, q); });
    if (radix == 5) run_pass(pass, [](const Pass& s, size_t p, size_t q) HWY_ATTR { radix5(s, p, q); });
    pass.stride *= radix;
    std::swap(a, b);
    pass.in = a;
    pass.out = b;
  }
  return a;
}

// With Z the transform of x[2n] + i x[2n + 1]: the halves' transforms are E = (Z[k] + conj Z[M - k]) / 2 and
// O = (Z[k] - conj Z[M - k]) / 2i, and X[k] = E + e^(-2 pi i k / N) O.
void unpack_bins(const RealFft::Tables& t, size_t size, const float* z, size_t frames, View<float, 2> re,
                 View<float, 2> im, size_t first) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), points = size / 2;
  const auto half = hn::Set(d, 0.5f);
  HWY_ALIGN float re_lanes[kMaxLanes], im_lanes[kMaxLanes];
  for (size_t k = 0; k <= points; ++k) {
    const float *zk = re_of(z, k % points, lanes), *zm = re_of(z, (points - k) % points, lanes);
    const auto a = hn::LoadU(d, zk), ai = hn::LoadU(d, zk + lanes), b = hn::LoadU(d, zm), bi = hn::LoadU(d, zm + lanes);
    const auto even = hn::Mul(half, hn::Add(a, b)), even_i = hn::Mul(half, hn::Sub(ai, bi));
    const auto odd = hn::Mul(half, hn::Add(ai, bi)), odd_i = hn::Mul(half, hn::Sub(b, a));
    const auto c = hn::Set(d, t.cosine[k]), s = hn::Set(d, -t.sine[k]);
    const auto x = hn::Add(even, hn::NegMulAdd(odd_i, s, hn::Mul(odd, c)));
    const auto xi = hn::Add(even_i, hn::MulAdd(odd_i, c, hn::Mul(odd, s)));
    hn::StoreU(x, d, re_lanes);
    hn::StoreU(k == 0 || k == points ? hn::Zero(d) : xi, d, im_lanes);
    for (size_t f = 0; f < frames; ++f) {
      re(first + f, k) = re_lanes[f];
      im(first + f, k) = im_lanes[f];
    }
  }
}

// The reverse: E = (X[k] + conj X[M - k]) / 2, O = (X[k] - conj X[M - k]) / 2 * e^(2 pi i k / N), Z = E + i O; with 1 /
// M.
void pack_bins(const RealFft::Tables& t, size_t size, const View<const float, 2>& re, const View<const float, 2>& im,
               size_t first, size_t frames, float* z) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), points = size / 2;
  const auto scale = hn::Set(d, 0.5f / static_cast<float>(points));
  HWY_ALIGN float lane[4][kMaxLanes] = {};
  for (size_t k = 0; k < points; ++k) {
    for (size_t f = 0; f < frames; ++f) {
      lane[0][f] = re(first + f, k);
      lane[1][f] = k == 0 ? 0.0f : im(first + f, k);
      lane[2][f] = re(first + f, points - k);
      lane[3][f] = k == 0 ? 0.0f : im(first + f, points - k);
    }
    const auto a = hn::LoadU(d, lane[0]), ai = hn::LoadU(d, lane[1]);
    const auto b = hn::LoadU(d, lane[2]), bi = hn::LoadU(d, lane[3]);
    const auto even = hn::Add(a, b), even_i = hn::Sub(ai, bi), u = hn::Sub(a, b), ui = hn::Add(ai, bi);
    const auto c = hn::Set(d, t.cosine[k]), s = hn::Set(d, t.sine[k]);
    const auto odd = hn::NegMulAdd(ui, s, hn::Mul(u, c)), odd_i = hn::MulAdd(ui, c, hn::Mul(u, s));
    hn::StoreU(hn::Mul(scale, hn::Sub(even, odd_i)), d, re_of(z, k, lanes));
    hn::StoreU(hn::Mul(scale, hn::Add(even_i, odd)), d, re_of(z, k, lanes) + lanes);
  }
}

void forward_batch(const RealFft& plan, const View<const float, 2>& frames, View<float, 2> re, View<float, 2> im,
                   float* scratch) {
  const size_t lanes = hn::Lanes(Tag()), size = plan.size();
  for (size_t first = 0; first < frames.extent(0); first += lanes) {
    const size_t here = std::min(lanes, frames.extent(0) - first);
    if (here < lanes) std::fill_n(scratch, size * lanes, 0.0f);
    // Pairs of samples are complex numbers already: sample n stands at n lanes.
    for (size_t f = 0; f < here; ++f) {
      const float* row = frames.row(first + f);
      for (size_t n = 0; n < size; ++n) scratch[n * lanes + f] = row[n];
    }
    const float* z = complex_transform(plan.tables(), size, -1.0f, scratch, scratch + size * lanes);
    unpack_bins(plan.tables(), size, z, here, re, im, first);
  }
}

void inverse_batch(const RealFft& plan, const View<const float, 2>& re, const View<const float, 2>& im,
                   View<float, 2> frames, float* scratch) {
  const size_t lanes = hn::Lanes(Tag()), size = plan.size();
  for (size_t first = 0; first < frames.extent(0); first += lanes) {
    const size_t here = std::min(lanes, frames.extent(0) - first);
    pack_bins(plan.tables(), size, re, im, first, here, scratch);
    const float* z = complex_transform(plan.tables(), size, 1.0f, scratch, scratch + size * lanes);
    for (size_t f = 0; f < here; ++f) {
      float* row = frames.row(first + f);
      for (size_t n = 0; n < size; ++n) row[n] = z[n * lanes + f];
    }
  }
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syrinx::kernels {

HWY_EXPORT(forward_batch);
HWY_EXPORT(inverse_batch);

Result<RealFft> RealFft::create(size_t size) {
  constexpr size_t kLargest = 65536;
  if (size < 2 || size % 2 != 0 || size > kLargest) {
    return fail(Code::kUnsupported, "a real transform of {} points is not offered; the size is even, from 2 to {}",
                size, kLargest);
  }
  RealFft plan;
  plan.size_ = size;
  size_t rest = size / 2;
  for (const size_t radix : {4, 2, 3, 5}) {
    for (; rest % radix == 0; rest /= radix) plan.tables_.radices.push_back(radix);
  }
  if (rest != 1) {
    return fail(Code::kUnsupported,
                "a real transform of {} points is not offered; {} has a prime factor other than 2, 3, 5", size, size);
  }
  for (size_t k = 0; k < size; ++k) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
    plan.tables_.cosine.push_back(static_cast<float>(std::cos(angle)));
    plan.tables_.sine.push_back(static_cast<float>(std::sin(angle)));
  }
  return plan;
}

size_t RealFft::scratch_size() const { return 2 * size_ * kMaxLanes; }

void RealFft::forward(View<const float, 2> frames, View<float, 2> re, View<float, 2> im,
                      std::span<float> scratch) const {
  SYRINX_CHECK(scratch.size() >= scratch_size() && frames.extent(1) == size_ && re.extent(1) == bins(),
               "scratch {} frames [{}, {}] bins {} of size {}", scratch.size(), frames.extent(0), frames.extent(1),
               re.extent(1), size_);
  HWY_DYNAMIC_DISPATCH(forward_batch)(*this, frames, re, im, scratch.data());
}

void RealFft::inverse(View<const float, 2> re, View<const float, 2> im, View<float, 2> frames,
                      std::span<float> scratch) const {
  SYRINX_CHECK(scratch.size() >= scratch_size() && frames.extent(1) == size_ && re.extent(1) == bins(),
               "scratch {} frames [{}, {}] bins {} of size {}", scratch.size(), frames.extent(0), frames.extent(1),
               re.extent(1), size_);
  HWY_DYNAMIC_DISPATCH(inverse_batch)(*this, re, im, frames, scratch.data());
}

}  // namespace syrinx::kernels
#endif  // HWY_ONCE
