// What one element of a binary or plain unary operator is, for the loops and for the kernels of
// single elements.
//
// Everything is forced inline and calls nothing of the standard library that could be kept as a
// function of its own: these are compiled for several instruction sets, and the linker must not
// mix them.
#pragma once

#include <cstdint>

namespace eddy::cpu::scalar {

#define EDDY_APPLY [[gnu::always_inline]] static inline

template <typename T>
inline constexpr bool kIsFloat = T(0.5f) != T(0);
template <typename T>
inline constexpr bool kIsSigned = T(-1) < T(0);
template <>
inline constexpr bool kIsFloat<bool> = false;
template <>
inline constexpr bool kIsSigned<bool> = false;

// Integers wrap: computed as 64-bit words and cut.
template <typename T>
EDDY_APPLY uint64_t word(T value) {
  return static_cast<uint64_t>(value);
}

struct Add {
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a + b;
    else
      return static_cast<T>(word(a) + word(b));
  }
};
struct Sub {
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a - b;
    else
      return static_cast<T>(word(a) - word(b));
  }
};
struct Mul {
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a * b;
    else
      return static_cast<T>(word(a) * word(b));
  }
};
// The lowest integer by -1 wraps to itself.
struct Div {
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a / b;
    else if constexpr (kIsSigned<T>)
      return b == T(-1) ? static_cast<T>(0 - word(a)) : static_cast<T>(a / b);
    else
      return static_cast<T>(a / b);
  }
};
// C's remainder.
struct Fmod {
  EDDY_APPLY float apply(float a, float b) { return __builtin_fmodf(a, b); }
  EDDY_APPLY double apply(double a, double b) { return __builtin_fmod(a, b); }
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    if constexpr (kIsSigned<T>)
      return b == T(-1) ? T(0) : static_cast<T>(a % b);
    else
      return static_cast<T>(a % b);
  }
};
// Python's remainder: the sign of the divisor. Integers only.
struct FloorMod {
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    const T rest = Fmod::apply(a, b);
    if constexpr (kIsSigned<T>) {
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      return rest;
    }
  }
};
struct Pow {
  EDDY_APPLY float apply(float a, float b) { return __builtin_powf(a, b); }
  EDDY_APPLY double apply(double a, double b) { return __builtin_pow(a, b); }
};
// A NaN on either side is the result.
struct Max {
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct Prelu {
  template <typename T>
  EDDY_APPLY T apply(T a, T b) {
    return a < 0 ? Mul::apply(a, b) : a;
  }
};
struct And {
  EDDY_APPLY bool apply(bool a, bool b) { return a & b; }
};
struct Or {
  EDDY_APPLY bool apply(bool a, bool b) { return a | b; }
};
struct Xor {
  EDDY_APPLY bool apply(bool a, bool b) { return a != b; }
};
struct Equal {
  template <typename T>
  EDDY_APPLY bool apply(T a, T b) {
    return a == b;
  }
};
struct Greater {
  template <typename T>
  EDDY_APPLY bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterOrEqual {
  template <typename T>
  EDDY_APPLY bool apply(T a, T b) {
    return a >= b;
  }
};
struct Less {
  template <typename T>
  EDDY_APPLY bool apply(T a, T b) {
    return a < b;
  }
};
struct LessOrEqual {
  template <typename T>
  EDDY_APPLY bool apply(T a, T b) {
    return a <= b;
  }
};

// Plain unary operators. `p` holds the operator's two parameters.

struct Abs {
  EDDY_APPLY float apply(float x, const float*) { return __builtin_fabsf(x); }
  EDDY_APPLY double apply(double x, const double*) { return __builtin_fabs(x); }
  template <typename T>
  EDDY_APPLY T apply(T x, const T*) {
    return x < 0 ? static_cast<T>(0 - word(x)) : x;
  }
};
struct Neg {
  template <typename T>
  EDDY_APPLY T apply(T x, const T*) {
    if constexpr (kIsFloat<T>)
      return -x;
    else
      return static_cast<T>(0 - word(x));
  }
};
struct Relu {
  template <typename T>
  EDDY_APPLY T apply(T x, const T*) {
    return x < 0 ? T(0) : x;
  }
};
struct Sign {
  template <typename T>
  EDDY_APPLY T apply(T x, const T*) {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x == x ? T(0) : x;
  }
};
struct Not {
  EDDY_APPLY bool apply(bool x, const bool*) { return !x; }
};
struct Ceil {
  EDDY_APPLY float apply(float x, const float*) { return __builtin_ceilf(x); }
  EDDY_APPLY double apply(double x, const double*) { return __builtin_ceil(x); }
};
struct Floor {
  EDDY_APPLY float apply(float x, const float*) { return __builtin_floorf(x); }
  EDDY_APPLY double apply(double x, const double*) { return __builtin_floor(x); }
};
// Half goes to the even neighbour (the rounding mode is never changed).
struct Round {
  EDDY_APPLY float apply(float x, const float*) { return __builtin_rintf(x); }
  EDDY_APPLY double apply(double x, const double*) { return __builtin_rint(x); }
};
struct Sqrt {
  EDDY_APPLY float apply(float x, const float*) { return __builtin_sqrtf(x); }
  EDDY_APPLY double apply(double x, const double*) { return __builtin_sqrt(x); }
};
struct Reciprocal {
  template <typename T>
  EDDY_APPLY T apply(T x, const T*) {
    return T(1) / x;
  }
};
struct Softsign {
  EDDY_APPLY float apply(float x, const float*) { return x / (1 + __builtin_fabsf(x)); }
};
struct LeakyRelu {
  EDDY_APPLY float apply(float x, const float* p) { return x < 0 ? p[0] * x : x; }
};
struct ThresholdedRelu {
  EDDY_APPLY float apply(float x, const float* p) { return x > p[0] ? x : 0; }
};
struct HardSigmoid {
  EDDY_APPLY float apply(float x, const float* p) {
    const float y = p[0] * x + p[1];
    return y < 0 ? 0 : y > 1 ? 1 : y;
  }
};
struct HardSwish {
  EDDY_APPLY float apply(float x, const float*) {
    const float y = x * (1.0f / 6) + 0.5f;
    return x * (y < 0 ? 0 : y > 1 ? 1 : y);
  }
};
// min(max(x, low), high); a NaN stays.
struct Clip {
  template <typename T>
  EDDY_APPLY T apply(T x, const T* p) {
    const T raised = x < p[0] ? p[0] : x;
    return raised > p[1] ? p[1] : raised;
  }
};
struct Sin {
  EDDY_APPLY float apply(float x, const float*) { return __builtin_sinf(x); }
};
struct Cos {
  EDDY_APPLY float apply(float x, const float*) { return __builtin_cosf(x); }
};

struct Tan {
  EDDY_APPLY float apply(float x, const float*) { return __builtin_tanf(x); }
};

// X(operator, types): what the loops compute element by element, and of what. The first of them
// have kernels for a single element, too (ops/cpu/single.cc).
#define EDDY_SINGLE_UNARY(X)               \
  X(Abs, float, double, int32_t, int64_t)  \
  X(Neg, float, double, int32_t, int64_t)  \
  X(Relu, float, double, int32_t, int64_t) \
  X(Not, bool)                             \
  X(Ceil, float, double)                   \
  X(Floor, float, double)                  \
  X(Round, float, double)                  \
  X(Sqrt, float, double)                   \
  X(Reciprocal, float, double)
#define EDDY_SCALAR_UNARY(X)               \
  EDDY_SINGLE_UNARY(X)                     \
  X(Sign, float, double, int32_t, int64_t) \
  X(Softsign, float)                       \
  X(LeakyRelu, float)                      \
  X(ThresholdedRelu, float)                \
  X(HardSigmoid, float)                    \
  X(HardSwish, float)                      \
  X(Clip, float, double, int32_t, int64_t) \
  X(Sin, float)                            \
  X(Cos, float)                            \
  X(Tan, float)

// Conversions: see ops/reference/parts/number.h. Clamped and never undefined.
template <typename To, typename From>
EDDY_APPLY To convert(From value) {
  if constexpr (__is_same(To, bool)) {
    return value != From(0);
  } else if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    constexpr int kBits = static_cast<int>(sizeof(To)) * 8 - (kIsSigned<To> ? 1 : 0);
    constexpr From kEnd = static_cast<From>(uint64_t{1} << (kBits - 1)) * 2;  // 2^kBits
    constexpr From kBegin = kIsSigned<To> ? -kEnd : From(0);
    constexpr To kHighest =
        static_cast<To>((uint64_t{1} << (kBits - 1)) - 1 + (uint64_t{1} << (kBits - 1)));
    constexpr To kLowest = kIsSigned<To> ? static_cast<To>(~kHighest) : To(0);
    if (value >= kEnd) return kHighest;
    if (value <= kBegin) return kLowest;
    return value == value ? static_cast<To>(value) : To(0);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace eddy::cpu::scalar
