// Elementary functions on one vector of floats, for kernels to fuse.  The coefficients are our own: weighted
// least-squares fits, iterated towards the minimax, in double, then rounded.  Accuracies are tested over the range on
// every target (tests/kernels/vector_math_test.cc):
//   Exp          1.5 ulp; 0 below -104, infinity above 88.73; denormal results to one unit of the last place
//   Sin, Cos     1.5e-7 absolute for |x| <= 1e4; beyond that within [-1, 1] but of falling accuracy
//   SinSquared   3e-7 absolute for |x| <= 1e4; larger arguments are the caller's to avoid
//   Atan2        4e-7 rad; Atan2(0, x) follows the sign of the zero as std::atan2 does; infinities are not handled
//   Tanh         3 ulp;  Sigmoid 4 ulp where the result is normal;  Elu 3 ulp
// A NaN stays a NaN; Sin and Cos of an infinity are NaN.
#if defined(SYRINX_KERNELS_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYRINX_KERNELS_CPU_MATH_INL_H_
#undef SYRINX_KERNELS_CPU_MATH_INL_H_
#else
#define SYRINX_KERNELS_CPU_MATH_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace syrinx::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V bounded = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  const auto n = hn::NearestInt(hn::Mul(bounded, hn::Set(d, 1.44269504f)));
  const V nf = hn::ConvertTo(d, n);
  // ln 2 in two parts; the first has 15 bits, so that its product with n is exact.
  V r = hn::NegMulAdd(nf, hn::Set(d, 0.693145751953125f), bounded);
  r = hn::NegMulAdd(nf, hn::Set(d, 1.42860677e-06f), r);
  V p = hn::MulAdd(hn::Set(d, 1.38144649e-03f), r, hn::Set(d, 8.36878084e-03f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.16683927e-02f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.66665196e-01f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.99999940e-01f));
  V y = hn::Add(hn::Set(d, 1.0f), hn::MulAdd(hn::Mul(r, r), p, r));
  // 2^n as two factors, each a normal number: the ends of the range come out as denormals and infinity.
  const auto half = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(di, 127);
  y = hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias))));
  y = hn::Mul(y, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, half), bias))));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// sin(r) for |r| <= pi / 2.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V SinReduced(D d, V r) {
  const V r2 = hn::Mul(r, r);
  V p = hn::MulAdd(hn::Set(d, -2.39073668e-08f), r2, hn::Set(d, 2.75265188e-06f));
  p = hn::MulAdd(p, r2, hn::Set(d, -1.98408918e-04f));
  p = hn::MulAdd(p, r2, hn::Set(d, 8.33333097e-03f));
  p = hn::MulAdd(p, r2, hn::Set(d, -1.66666672e-01f));
  return hn::MulAdd(hn::Mul(r, r2), p, r);
}

// x - n * pi, with pi in parts of 11, 11 and 24 bits: the first two products are exact for n below 2^13, fused or not.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V SubtractPi(D d, V n, V x) {
  V r = hn::NegMulAdd(n, hn::Set(d, 3.140625f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 9.67502593994140625e-04f), r);
  return hn::NegMulAdd(n, hn::Set(d, 1.50995788e-07f), r);
}

// Bounds a reduced argument that went astray because the original was huge (1.6 leaves room for the rounding of n),
// and lets NaN and infinity become NaN.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V BoundReduced(D d, V r, V original) {
  const V bounded = hn::Min(hn::Max(r, hn::Set(d, -1.6f)), hn::Set(d, 1.6f));
  return hn::Add(bounded, hn::Sub(original, original));
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Sin(D d, V x) {
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 0.318309886f)));
  const V r = BoundReduced(d, SubtractPi(d, hn::ConvertTo(d, n), x), x);
  return hn::Xor(SinReduced(d, r), hn::BitCast(d, hn::ShiftLeft<31>(n)));
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Cos(D d, V x) {
  const hn::RebindToSigned<D> di;
  // cos(x) = -(-1)^n sin(x - (n + 1/2) pi); half an odd number times pi is still an exact product.
  const auto n = hn::NearestInt(hn::MulSub(x, hn::Set(d, 0.318309886f), hn::Set(d, 0.5f)));
  const V r = BoundReduced(d, SubtractPi(d, hn::Add(hn::ConvertTo(d, n), hn::Set(d, 0.5f)), x), x);
  return hn::Xor(SinReduced(d, r), hn::BitCast(d, hn::ShiftLeft<31>(hn::Add(n, hn::Set(di, 1)))));
}

// sin(x)^2, which needs no sign: for Snake.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V SinSquared(D d, V x) {
  const auto n = hn::NearestInt(hn::Mul(x, hn::Set(d, 0.318309886f)));
  const V s = SinReduced(d, SubtractPi(d, hn::ConvertTo(d, n), x));
  return hn::Mul(s, s);
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Atan2(D d, V y, V x) {
  const V ax = hn::Abs(x), ay = hn::Abs(y);
  const V larger = hn::Max(ax, ay), smaller = hn::Min(ax, ay);
  const V q = hn::IfThenZeroElse(hn::Eq(larger, hn::Zero(d)), hn::Div(smaller, larger));
  const V q2 = hn::Mul(q, q);
  V p = hn::MulAdd(hn::Set(d, 2.92068045e-03f), q2, hn::Set(d, -1.63678825e-02f));
  p = hn::MulAdd(p, q2, hn::Set(d, 4.32117917e-02f));
  p = hn::MulAdd(p, q2, hn::Set(d, -7.55220875e-02f));
  p = hn::MulAdd(p, q2, hn::Set(d, 1.06660023e-01f));
  p = hn::MulAdd(p, q2, hn::Set(d, -1.42110541e-01f));
  p = hn::MulAdd(p, q2, hn::Set(d, 1.99937731e-01f));
  p = hn::MulAdd(p, q2, hn::Set(d, -3.33331525e-01f));
  V a = hn::MulAdd(hn::Mul(q, q2), p, q);
  a = hn::IfThenElse(hn::Gt(ay, ax), hn::Sub(hn::Set(d, 1.57079633f), a), a);
  // Highway 1.0.3's IfNegativeThenElse reads floats wrongly on SSSE3 and takes -0 for positive in its scalar target.
  const hn::RebindToSigned<D> di;
  const auto x_negative = hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, x))));
  a = hn::IfThenElse(x_negative, hn::Sub(hn::Set(d, 3.14159265f), a), a);
  // NaN that Min and Max may have dropped comes back through the sum, which is zero times anything finite.
  a = hn::IfThenElse(hn::Eq(hn::Add(x, y), hn::Add(x, y)), a, hn::Add(x, y));
  return hn::CopySignToAbs(a, y);
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V ax = hn::Abs(x), x2 = hn::Mul(x, x), one = hn::Set(d, 1.0f);
  V p = hn::MulAdd(hn::Set(d, -5.51516702e-03f), x2, hn::Set(d, 2.04694234e-02f));
  p = hn::MulAdd(p, x2, hn::Set(d, -5.36880232e-02f));
  p = hn::MulAdd(p, x2, hn::Set(d, 1.33308306e-01f));
  p = hn::MulAdd(p, x2, hn::Set(d, -3.33332598e-01f));
  const V small = hn::MulAdd(hn::Mul(x, x2), p, x);
  const V e = Exp(d, hn::Add(ax, ax));
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::IfThenElse(hn::Lt(ax, hn::Set(d, 0.65f)), small, hn::CopySign(large, x));
}

template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

// x where x >= 0, else e^x - 1 = 2^n (e^r - 1) + (2^n - 1), whose last bracket is exact: small x keep all their digits.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V Elu(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V bounded = hn::Min(hn::Max(x, hn::Set(d, -20.0f)), hn::Zero(d));  // e^-20 is lost in -1
  // Adding 1.5 * 2^23 rounds to the nearest integer, halves to even, and leaves n in the lower bits.
  const V magic = hn::Set(d, 12582912.0f);
  const V shifted = hn::Add(hn::Mul(bounded, hn::Set(d, 1.44269504f)), magic);
  const V nf = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(nf, hn::Set(d, 0.693145751953125f), bounded);
  r = hn::NegMulAdd(nf, hn::Set(d, 1.42860677e-06f), r);
  V p = hn::MulAdd(hn::Set(d, 1.38144649e-03f), r, hn::Set(d, 8.36878084e-03f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.16683927e-02f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.66665196e-01f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.99999940e-01f));
  const V less_one = hn::MulAdd(hn::Mul(r, r), p, r);
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 127))));
  const V y = hn::MulAdd(power, less_one, hn::Sub(power, hn::Set(d, 1.0f)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), y, x);
}

// (1 + tanh(u)) / 2 is the sigmoid of 2 u: one exponential, and no cancellation for negative x.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  const V twice_u = hn::Mul(x, hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.0713548163f), hn::Set(d, 1.59576912f)));
  return hn::Mul(x, Sigmoid(d, twice_u));
}

// For x < 0 the Gaussian tail x Phi(x), for others what is left of x: no cancellation on either side.  The tail is
// e^(-x^2 / 2) t Q(t) with t = 1 / (1 + 0.3 |x|); Q is our own fit in double at Chebyshev's nodes for |x| <= 9, error
// of the tail 4e-8.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V GeluErf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.3f), one));
  V q = hn::MulAdd(hn::Set(d, 0.0380356833f), t, hn::Set(d, -0.167287558f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.224263638f));
  q = hn::MulAdd(q, t, hn::Set(d, -0.0707856566f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.138021305f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.0968890414f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.121270619f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.11959295f));
  const V tail = hn::Mul(hn::Mul(q, t), Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f))));
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)));
}

}  // namespace syrinx::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SYRINX_KERNELS_CPU_MATH_INL_H_
