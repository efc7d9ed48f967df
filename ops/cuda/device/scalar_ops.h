// What one element of each operator is, on the device and on the host.
//
// float16 and bfloat16 are computed as float and rounded once. Integers wrap. The same source is
// compiled by nvcc and, for tests, by the host's compiler: what differs is the library behind expf
// and its like.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#ifdef __CUDACC_RTC__  // without the toolkit's headers
#define EDDY_HD __device__ inline
#elif defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define EDDY_HD __host__ __device__ inline
#else
#include "graph/ir/half.h"
#define EDDY_HD inline
#endif

namespace eddy::cuda {

// Element types by the names that kernels carry.
using f32 = float;
using f64 = double;
using i32 = int32_t;
using i64 = int64_t;
using b8 = bool;
using i8 = int8_t;
using i16 = int16_t;
using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

// The type in which T is computed.
template <typename T>
struct Computed {
  using type = T;
};
template <>
struct Computed<f16> {
  using type = float;
};
template <>
struct Computed<bf16> {
  using type = float;
};
template <typename T>
using computed_t = typename Computed<T>::type;

template <typename T>
EDDY_HD computed_t<T> load(T value) {
  return value;
}
template <typename T>
EDDY_HD T store(computed_t<T> value) {
  return value;
}
#ifdef __CUDACC_RTC__
// The instructions that the functions of cuda_fp16.h and cuda_bf16.h are.
EDDY_HD float load(f16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
EDDY_HD float load(bf16 value) { return __uint_as_float(static_cast<uint32_t>(value.bits) << 16); }
template <>
EDDY_HD f16 store<f16>(float value) {
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}
template <>
EDDY_HD bf16 store<bf16>(float value) {
  bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}
#elif defined(__CUDACC__)
EDDY_HD float load(f16 value) { return __half2float(__half(__half_raw{value.bits})); }
EDDY_HD float load(bf16 value) {
  return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{value.bits}));
}
template <>
EDDY_HD f16 store<f16>(float value) {
  return {static_cast<__half_raw>(__float2half_rn(value)).x};
}
template <>
EDDY_HD bf16 store<bf16>(float value) {
  return {static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x};
}
#else
EDDY_HD float load(f16 value) { return float16_to_float(value.bits); }
EDDY_HD float load(bf16 value) { return bfloat16_to_float(value.bits); }
template <>
EDDY_HD f16 store<f16>(float value) {
  return {float_to_float16(value)};
}
template <>
EDDY_HD bf16 store<bf16>(float value) {
  return {float_to_bfloat16(value)};
}
#endif

// A double, rounded once.
template <typename T>
EDDY_HD T store_double(double value) {
  return static_cast<T>(value);
}
#ifdef __CUDACC_RTC__
template <>
EDDY_HD f16 store_double<f16>(double value) {
  f16 result;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(result.bits) : "d"(value));
  return result;
}
// To float by rounding to odd, which keeps what the second rounding needs.
template <>
EDDY_HD bf16 store_double<bf16>(double value) {
  float toward_zero = __double2float_rz(value);
  const bool is_cut = value == value && static_cast<double>(toward_zero) != value;
  if (is_cut) toward_zero = __uint_as_float(__float_as_uint(toward_zero) | 1u);
  return store<bf16>(toward_zero);
}
#elif defined(__CUDACC__)
template <>
EDDY_HD f16 store_double<f16>(double value) {
  return {static_cast<__half_raw>(__double2half(value)).x};
}
template <>
EDDY_HD bf16 store_double<bf16>(double value) {
  return {static_cast<__nv_bfloat16_raw>(__double2bfloat16(value)).x};
}
#else
template <>
EDDY_HD f16 store_double<f16>(double value) {
  return {double_to_float16(value)};
}
template <>
EDDY_HD bf16 store_double<bf16>(double value) {
  return {double_to_bfloat16(value)};
}
#endif

template <typename T>
inline constexpr bool is_real = std::is_floating_point_v<computed_t<T>>;

// A float cut to an integer, clamped to its range; NaN becomes 0.
template <typename T>
EDDY_HD T saturate(double value) {
  constexpr T kLowest = static_cast<T>(T(0) < T(-1) ? 0 : T(1) << (sizeof(T) * 8 - 1));
  constexpr T kHighest = static_cast<T>(~kLowest);
  if (!(value == value)) return 0;
  if (value <= static_cast<double>(kLowest)) return kLowest;
  // For 64-bit types the highest value rounds up to the first double out of range.
  if (value >= static_cast<double>(kHighest)) return kHighest;
  return static_cast<T>(value);
}

// An integer as a double that rounds to fewer bits as the integer does: of 64 bits, the last that a
// double has is set if there are any behind it.
template <typename T>
EDDY_HD double whole_as_double(T value) {
  if constexpr (sizeof(T) < 8) {
    return static_cast<double>(value);
  } else {
    const uint64_t bits = static_cast<uint64_t>(value);
    constexpr bool kIsSigned = !(T(0) < T(-1));
    const bool is_negative = kIsSigned && bits >> 63 != 0;
    uint64_t magnitude = is_negative ? 0 - bits : bits;
    if (magnitude >> 53 != 0 && (magnitude & 0x7ff) != 0) {
      magnitude = (magnitude & ~uint64_t{0x7ff}) | 0x800;
    }
    const double whole = static_cast<double>(magnitude);
    return is_negative ? -whole : whole;
  }
}

// Cast: floats to integers saturate, integers to integers keep the low bits, anything but zero is
// true, and what is rounded is rounded once.
template <typename To, typename From>
EDDY_HD To convert(From from) {
  const auto value = load(from);
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_same_v<To, f16> || std::is_same_v<To, bf16>) {
    if constexpr (is_real<From>) {
      return store_double<To>(static_cast<double>(value));
    } else {
      return store_double<To>(whole_as_double(value));
    }
  } else if constexpr (!is_real<To> && is_real<From>) {
    return saturate<To>(static_cast<double>(value));
  } else {
    return static_cast<To>(value);
  }
}

// C: the computed type.
#define EDDY_BINARY_OP(Name, expression)  \
  struct Name {                           \
    template <typename C>                 \
    EDDY_HD static auto apply(C x, C y) { \
      return expression;                  \
    }                                     \
  };
template <typename C>
EDDY_HD uint64_t word(C value) {
  return static_cast<uint64_t>(value);
}
#define EDDY_WRAPPING_OP(Name, sign)                 \
  struct Name {                                      \
    template <typename C>                            \
    EDDY_HD static C apply(C x, C y) {               \
      if constexpr (std::is_floating_point_v<C>) {   \
        return x sign y;                             \
      } else {                                       \
        return static_cast<C>(word(x) sign word(y)); \
      }                                              \
    }                                                \
  };
// An integer to a negative power is the true value cut towards zero; of zero it is 0.
template <typename C>
EDDY_HD C power(C x, C y) {
  if constexpr (std::is_floating_point_v<C>) {
    return std::pow(x, y);
  } else {
    if (y < 0) return x == C(1) ? C(1) : x == C(-1) ? ((y & 1) != 0 ? C(-1) : C(1)) : C(0);
    uint64_t result = 1;
    uint64_t square = word(x);
    for (uint64_t rest = word(y); rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) result *= square;
      square *= square;
    }
    return static_cast<C>(result);
  }
}
EDDY_WRAPPING_OP(Add, +)
EDDY_WRAPPING_OP(Sub, -)
EDDY_WRAPPING_OP(Mul, *)
EDDY_BINARY_OP(Div, x / y)
EDDY_BINARY_OP(Pow, power(x, y))
EDDY_BINARY_OP(PRelu, x < C(0) ? Mul::apply(x, y) : x)
EDDY_BINARY_OP(Max, x > y || x != x ? x : y)  // a NaN on either side is the result
EDDY_BINARY_OP(Min, x < y || x != x ? x : y)
EDDY_BINARY_OP(Equal, x == y)
EDDY_BINARY_OP(Less, x < y)
EDDY_BINARY_OP(LessOrEqual, x <= y)
EDDY_BINARY_OP(Greater, x > y)
EDDY_BINARY_OP(GreaterOrEqual, x >= y)
EDDY_BINARY_OP(And, x&& y)
EDDY_BINARY_OP(Or, x || y)
EDDY_BINARY_OP(Xor, x != y)
EDDY_BINARY_OP(BitwiseAnd, static_cast<C>(x& y))
EDDY_BINARY_OP(BitwiseOr, static_cast<C>(x | y))
EDDY_BINARY_OP(BitwiseXor, static_cast<C>(x ^ y))
// Shifting out every bit leaves 0.
EDDY_BINARY_OP(ShiftLeft, y >= C(sizeof(C) * 8) ? C(0) : static_cast<C>(word(x) << y))
EDDY_BINARY_OP(ShiftRight, y >= C(sizeof(C) * 8) ? C(0) : static_cast<C>(word(x) >> y))
EDDY_BINARY_OP(Fmod, std::fmod(x, y))
EDDY_BINARY_OP(ClipLow, x < y ? y : x)
EDDY_BINARY_OP(ClipHigh, y < x ? y : x)
#undef EDDY_BINARY_OP
#undef EDDY_WRAPPING_OP

// Where the low limit is above the high one the result is the high one.
struct Clip {
  template <typename C>
  EDDY_HD static C apply(C x, C low, C high) {
    return ClipHigh::apply(ClipLow::apply(x, low), high);
  }
};

}  // namespace eddy::cuda
