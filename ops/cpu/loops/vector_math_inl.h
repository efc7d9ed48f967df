// Vectors of floats and the functions exp, log, tanh, erf and their kin on them.
//
// Included by one source file for each instruction set; internal linkage, see scalar_ops.h. Written
// with the compiler's vector types, so every lane is computed alike: the last, partial vector
// of a loop goes through the same instructions as the others.
//
// Errors against the exact result, in units in the last place, measured by the tests: exp 1.5,
// log 1.5, sigmoid 3, tanh 3, erf 3, expm1 2.5, softplus 3.
//
// Sources: exp and expm1 by Taylor's polynomial on [-ln2/2, ln2/2]; exp with 16 roots of two in a
// register by a shorter one (Tang, "Table-driven implementation of the exponential function in IEEE
// floating-point arithmetic", ACM TOMS 15, 1989); log by the series of
// 2 atanh(f / (2 + f)) in the arrangement of FreeBSD's msun (k ln2 split in two); erf by Taylor
// below 1; erfc by a Chebyshev interpolation (degree 10) of erfc(a) exp(a^2) / t in
// t = 1 / (1 + a/2), after Hastings' substitution.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "ops/cpu/loops/scalar_ops.h"

namespace eddy::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kWidth = kVectorBytes / 4;
typedef float V __attribute__((vector_size(kVectorBytes)));
typedef int32_t I __attribute__((vector_size(kVectorBytes)));
typedef float UnalignedV __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));

#define EDDY_INLINE [[gnu::always_inline]] static inline

#if defined(__AVX512F__)
// Plain forms have an operand that gcc 12 takes for uninitialized.
constexpr __mmask16 kAllLanes = 0xffff;
#endif

EDDY_INLINE V set1(float x) { return V{} + x; }
EDDY_INLINE I bits_of(V x) { return reinterpret_cast<I>(x); }
EDDY_INLINE V float_of(I x) { return reinterpret_cast<V>(x); }
EDDY_INLINE V load(const float* p) { return *reinterpret_cast<const UnalignedV*>(p); }
EDDY_INLINE void store(float* p, V x) { *reinterpret_cast<UnalignedV*>(p) = x; }

// The first `count` lanes, `fill` beyond; nothing beyond them is touched.
#if defined(__AVX512F__)
EDDY_INLINE __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1u << count) - 1u);
}
EDDY_INLINE V load_first(const float* p, int64_t count, float fill) {
  return reinterpret_cast<V>(_mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_lanes(count), p));
}
EDDY_INLINE void store_first(float* p, V x, int64_t count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), reinterpret_cast<__m512>(x));
}
#elif defined(__AVX2__)
EDDY_INLINE I first_lanes(int64_t count) {
  return I{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(count);
}
EDDY_INLINE V load_first(const float* p, int64_t count, float fill) {
  const __m256i lanes = reinterpret_cast<__m256i>(first_lanes(count));
  return reinterpret_cast<V>(_mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(p, lanes),
                                              reinterpret_cast<__m256>(lanes)));
}
EDDY_INLINE void store_first(float* p, V x, int64_t count) {
  _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(first_lanes(count)),
                      reinterpret_cast<__m256>(x));
}
#else
EDDY_INLINE V load_first(const float* p, int64_t count, float fill) {
  V x = set1(fill);
  for (int64_t i = 0; i < count; ++i) reinterpret_cast<float*>(&x)[i] = p[i];
  return x;
}
EDDY_INLINE void store_first(float* p, V x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) p[i] = reinterpret_cast<const float*>(&x)[i];
}
#endif

// a * b + c, fused where the processor can.
EDDY_INLINE V fma(V a, V b, V c) {
#if defined(__AVX512F__)
  return reinterpret_cast<V>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__AVX2__)
  return reinterpret_cast<V>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  return a * b + c;
#endif
}
EDDY_INLINE V fma(V a, V b, float c) { return fma(a, b, set1(c)); }
// Of two numbers the greater; of a NaN y, it.
EDDY_INLINE V max(V x, V y) {
#if defined(__AVX512F__)
  return reinterpret_cast<V>(
      _mm512_maskz_max_ps(kAllLanes, reinterpret_cast<__m512>(x), reinterpret_cast<__m512>(y)));
#elif defined(__AVX2__)
  return reinterpret_cast<V>(
      _mm256_max_ps(reinterpret_cast<__m256>(x), reinterpret_cast<__m256>(y)));
#else
  return y < x ? x : y;
#endif
}

EDDY_INLINE V abs(V x) { return float_of(bits_of(x) & 0x7fffffff); }
EDDY_INLINE V copy_sign(V magnitude, V sign) {
  return float_of(bits_of(magnitude) | (bits_of(sign) & INT32_MIN));
}
// Beyond a limit the limit; a NaN stays.
EDDY_INLINE V clamp(V x, float low, float high) {
  x = max(set1(low), x);
#if defined(__AVX512F__)
  return reinterpret_cast<V>(
      _mm512_maskz_min_ps(kAllLanes, _mm512_set1_ps(high), reinterpret_cast<__m512>(x)));
#elif defined(__AVX2__)
  return reinterpret_cast<V>(_mm256_min_ps(_mm256_set1_ps(high), reinterpret_cast<__m256>(x)));
#else
  return x > high ? set1(high) : x;
#endif
}
// 1 / x for normal x up to 2^126, within 1 unit in the last place.
EDDY_INLINE V reciprocal(V x) {
#if defined(__AVX512F__)
  const V near = reinterpret_cast<V>(_mm512_maskz_rcp14_ps(kAllLanes, reinterpret_cast<__m512>(x)));
  return fma(near, fma(-x, near, 1.0f), near);
#else
  return 1.0f / x;
#endif
}

constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kRoundMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
constexpr float kLn2High = 0.693359375f;    // few digits, so that k * kLn2High is exact
constexpr float kLn2Low = -2.12194440054690583e-4f;

// x = k ln2 + r with |r| <= ln2/2; k as an integer and as a float.
struct Reduced {
  I k;
  V k_float;
  V r;
};
EDDY_INLINE Reduced reduce(V x) {
  const V shifted = fma(x, set1(kLog2E), kRoundMagic);
  const V k = shifted - kRoundMagic;
  V r = fma(k, set1(-kLn2High), x);
  r = fma(k, set1(-kLn2Low), r);
  return {bits_of(shifted) - bits_of(set1(kRoundMagic)), k, r};
}
// exp(r) - 1 for |r| <= ln2/2.
EDDY_INLINE V expm1_reduced(V r) {
  V q = set1(1.0f / 5040);
  q = fma(q, r, 1.0f / 720);
  q = fma(q, r, 1.0f / 120);
  q = fma(q, r, 1.0f / 24);
  q = fma(q, r, 1.0f / 6);
  q = fma(q, r, 0.5f);
  return fma(q * r, r, r);
}
// 2^k for -126 <= k <= 127.
EDDY_INLINE V power_of_two(I k) { return float_of((k + 127) << 23); }

// exp(x) for -104 <= x <= 89. Subnormal results and infinity included.
EDDY_INLINE V exp_bounded(V x) {
#if defined(__AVX512F__)
  // x = k ln2 + r, 16 k an integer, |r| <= ln2/32: the fraction of k chooses a root of two.
  alignas(64) static const float kRoots[16] = {1.0f,        1.04427373f, 1.09050775f, 1.13878858f,
                                               1.18920708f, 1.24185777f, 1.29683959f, 1.35425556f,
                                               1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f,
                                               1.68179286f, 1.75625217f, 1.8340081f,  1.91520655f};
  const V shifted = fma(x, set1(kLog2E), kRoundMagic / 16);
  const V k = shifted - kRoundMagic / 16;
  V r = fma(k, set1(-kLn2High), x);
  r = fma(k, set1(-kLn2Low), r);
  const V q = fma(r, set1(1.0f / 6), 0.5000162f);  // the least error of this degree
  const V root = reinterpret_cast<V>(_mm512_maskz_permutexvar_ps(
      kAllLanes, reinterpret_cast<__m512i>(shifted), _mm512_load_ps(kRoots)));
  const V e = fma(root, fma(q * r, r, r), root);
  return reinterpret_cast<V>(
      _mm512_maskz_scalef_ps(kAllLanes, reinterpret_cast<__m512>(e), reinterpret_cast<__m512>(k)));
#else
  const Reduced reduced = reduce(x);
  const V e = 1.0f + expm1_reduced(reduced.r);
  const I half = reduced.k >> 1;  // the power would leave the range
  return e * power_of_two(half) * power_of_two(reduced.k - half);
#endif
}
EDDY_INLINE V exp(V x) { return exp_bounded(clamp(x, -104.0f, 89.0f)); }

// exp(x) - 1 for x <= 40; larger x count as 40, those below -30 as -30 (-1 in float).
EDDY_INLINE V expm1(V x) {
  const Reduced reduced = reduce(clamp(x, -30.0f, 40.0f));
  const V scale = power_of_two(reduced.k);
  return fma(scale, expm1_reduced(reduced.r), scale - 1.0f);
}

// For 0 < x < infinity.
EDDY_INLINE V log_positive(V x) {
  const I is_subnormal = bits_of(x) < 0x00800000;
  x = is_subnormal ? x * 8388608.0f : x;  // 2^23
  constexpr int32_t kSqrtHalfBits = 0x3f3504f3;
  const I k = (bits_of(x) - kSqrtHalfBits) >> 23;
  const V k_float = __builtin_convertvector(k + (is_subnormal & -23), V);
  const V f = float_of(bits_of(x) - (k << 23)) - 1.0f;  // in [sqrt(1/2) - 1, sqrt(2) - 1)
  const V s = f / (2.0f + f);
  const V z = s * s;
  V series = set1(2.0f / 9);
  series = fma(series, z, 2.0f / 7);
  series = fma(series, z, 2.0f / 5);
  series = fma(series, z, 2.0f / 3);
  const V half_square = 0.5f * f * f;
  const V rest = fma(s, fma(series, z, half_square), k_float * kLn2Low);
  return fma(k_float, set1(kLn2High), f - (half_square - rest));
}
EDDY_INLINE V log(V x) {
  const V y = log_positive(x);
  const V not_a_number = float_of(I{} + 0x7fc00000);
  const V infinity = float_of(I{} + 0x7f800000);
  V result = x > 0.0f ? y : not_a_number;
  result = x == 0.0f ? -infinity : result;
  return x == infinity ? x : result;
}
// log(1 + e) for 0 <= e <= 1: the error of the sum is put back.
EDDY_INLINE V log1p_unit(V e) {
  const V u = 1.0f + e;
  return log_positive(u) + (e - (u - 1.0f)) / u;
}

EDDY_INLINE V sigmoid(V x) {
  const V e = exp_bounded(max(set1(-104.0f), float_of(bits_of(x) | INT32_MIN)));
  const V upper = reciprocal(1.0f + e);
#if defined(__AVX512F__)
  const __m512 u = reinterpret_cast<__m512>(upper);
  const __mmask16 is_negative =
      _mm512_cmplt_epi32_mask(reinterpret_cast<__m512i>(x), _mm512_setzero_si512());
  return reinterpret_cast<V>(_mm512_mask_mul_ps(u, is_negative, reinterpret_cast<__m512>(e), u));
#else
  return x < 0.0f ? e * upper : upper;
#endif
}
EDDY_INLINE V tanh(V x) {
  const V a = abs(x);
  const V e = expm1(2.0f * a);
  return copy_sign(e / (e + 2.0f), x);
}
EDDY_INLINE V softplus(V x) { return (x < 0.0f ? V{} : x) + log1p_unit(exp(-abs(x))); }

// erf for |x| < 1.
EDDY_INLINE V erf_small(V x) {
  const V z = x * x;
  constexpr float kTwoOverRootPi = 1.12837916709551257390f;
  // 2/sqrt(pi) * (-1)^n / (n! (2n+1)), n = 10 .. 1, and the n = 0 term last.
  V sum = set1(kTwoOverRootPi / (3628800.0f * 21));
  sum = fma(sum, z, -kTwoOverRootPi / (362880.0f * 19));
  sum = fma(sum, z, kTwoOverRootPi / (40320.0f * 17));
  sum = fma(sum, z, -kTwoOverRootPi / (5040.0f * 15));
  sum = fma(sum, z, kTwoOverRootPi / (720.0f * 13));
  sum = fma(sum, z, -kTwoOverRootPi / (120.0f * 11));
  sum = fma(sum, z, kTwoOverRootPi / (24.0f * 9));
  sum = fma(sum, z, -kTwoOverRootPi / (6.0f * 7));
  sum = fma(sum, z, kTwoOverRootPi / (2.0f * 5));
  sum = fma(sum, z, -kTwoOverRootPi / 3.0f);
  return x * fma(sum, z, kTwoOverRootPi);
}
// erfc for a >= 0.
EDDY_INLINE V erfc_positive(V a) {
  const V t = 1.0f / fma(a, set1(0.5f), 1.0f);
  const V u = t - 0.58f;
  V w = set1(0.03348503898f);
  w = fma(w, u, 0.01605680985f);
  w = fma(w, u, -0.07331409532f);
  w = fma(w, u, 0.004273741065f);
  w = fma(w, u, 0.1138740465f);
  w = fma(w, u, -0.05164144661f);
  w = fma(w, u, -0.2033398428f);
  w = fma(w, u, 0.08514786992f);
  w = fma(w, u, 0.586853697f);
  w = fma(w, u, 0.7790188233f);
  w = fma(w, u, 0.5694087224f);
  return t * w * exp(-(a * a));
}
EDDY_INLINE V erf(V x) {
  const V a = abs(x);
  return a < 1.0f ? erf_small(x) : copy_sign(1.0f - erfc_positive(a), x);
}
// x/2 erfc(-x/sqrt(2)): the left tail keeps its digits.
EDDY_INLINE V gelu(V x) {
  const V scaled = x * 0.70710678118654752440f;
  const V tail = erfc_positive(abs(scaled));
  const V far = scaled < 0.0f ? tail : 2.0f - tail;
  return 0.5f * x * (abs(scaled) < 1.0f ? 1.0f + erf_small(scaled) : far);
}
// 0.5 (1 + tanh(y)) = sigmoid(2 y).
EDDY_INLINE V gelu_tanh(V x) {
  const V y = 0.79788456080286535588f * x * fma(x * x, set1(0.044715f), 1.0f);
  return x * sigmoid(2.0f * y);
}

}  // namespace
}  // namespace eddy::cpu
