// The elementwise loops; included by one source file for each instruction set.
#pragma once

#include "ops/cpu/loops/loops.h"
#include "ops/cpu/loops/scalar_ops.h"
#include "ops/cpu/loops/vector_math_inl.h"

namespace eddy::cpu {
namespace {

// No iteration depends on another, also where the output is an input.
#if defined(__clang__)
#define EDDY_INDEPENDENT
#else
#define EDDY_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <typename Op, typename T, typename R>
void both_loop(const void* a, const void* b, void* out, int64_t count) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) z[i] = Op::apply(x[i], y[i]);
}
template <typename Op, typename T, typename R>
void right_scalar_loop(const void* a, const void* b, void* out, int64_t count) {
  const T* x = static_cast<const T*>(a);
  const T y = *static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) z[i] = Op::apply(x[i], y);
}
template <typename Op, typename T, typename R>
void left_scalar_loop(const void* a, const void* b, void* out, int64_t count) {
  const T x = *static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  R* z = static_cast<R*>(out);
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) z[i] = Op::apply(x, y[i]);
}

template <typename Op, typename... Ts>
constexpr void put_arithmetic(LoopSet& set, BinaryOp op) {
  BinaryLoops* row = set.binary[static_cast<int>(op)];
  ((row[static_cast<int>(kLoopTypeOf<Ts>)] = {both_loop<Op, Ts, Ts>, right_scalar_loop<Op, Ts, Ts>,
                                              left_scalar_loop<Op, Ts, Ts>}),
   ...);
}
template <typename Op, typename... Ts>
constexpr void put_comparison(LoopSet& set, BinaryOp op) {
  BinaryLoops* row = set.binary[static_cast<int>(op)];
  ((row[static_cast<int>(kLoopTypeOf<Ts>)] = {both_loop<Op, Ts, bool>,
                                              right_scalar_loop<Op, Ts, bool>,
                                              left_scalar_loop<Op, Ts, bool>}),
   ...);
}

template <typename Op, typename T>
void plain_unary_loop(const void* in, void* out, int64_t count, const void* p) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  const T parameters[2] = {static_cast<const T*>(p)[0], static_cast<const T*>(p)[1]};
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) y[i] = Op::apply(x[i], parameters);
}
template <typename Op, typename... Ts>
constexpr void put_plain(LoopSet& set, UnaryOp op) {
  UnaryLoop* row = set.unary[static_cast<int>(op)];
  ((row[static_cast<int>(kLoopTypeOf<Ts>)] = plain_unary_loop<Op, Ts>), ...);
}

template <typename T>
void is_nan_loop(const void* in, void* out, int64_t count) {
  const T* x = static_cast<const T*>(in);
  bool* y = static_cast<bool*>(out);
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] != x[i];
}

// Unsigned: sums wrap.
template <typename T>
void add_product_loop(const void* in, const void* factor, void* sums, int64_t count) {
  const T* x = static_cast<const T*>(in);
  const T by = *static_cast<const T*>(factor);
  T* y = static_cast<T*>(sums);
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) y[i] += x[i] * by;
}

// One body serves whole and partial vectors, so that an element's bits do not depend on its place.
template <V (*function)(V, const float*)>
void vector_unary_loop(const void* in, void* out, int64_t count, const void* p) {
  const float* x = static_cast<const float*>(in);
  float* y = static_cast<float*>(out);
  const float parameters[2] = {static_cast<const float*>(p)[0], static_cast<const float*>(p)[1]};
  for (int64_t i = 0; i < count; i += kWidth) {
    const int64_t rest = count - i;
    const V value = rest >= kWidth ? load(x + i) : load_first(x + i, rest, 1.0f);
    const V result = function(value, parameters);
    if (rest >= kWidth)
      store(y + i, result);
    else
      store_first(y + i, result, rest);
  }
}
template <V (*function)(V, const float*)>
constexpr void put_vector(LoopSet& set, UnaryOp op) {
  set.unary[static_cast<int>(op)][static_cast<int>(LoopType::kFloat)] = vector_unary_loop<function>;
}

EDDY_INLINE V exp_of(V x, const float*) { return exp(x); }
EDDY_INLINE V log_of(V x, const float*) { return log(x); }
EDDY_INLINE V sigmoid_of(V x, const float*) { return sigmoid(x); }
EDDY_INLINE V tanh_of(V x, const float*) { return tanh(x); }
EDDY_INLINE V erf_of(V x, const float*) { return erf(x); }
EDDY_INLINE V gelu_of(V x, const float*) { return gelu(x); }
EDDY_INLINE V gelu_tanh_of(V x, const float*) { return gelu_tanh(x); }
EDDY_INLINE V softplus_of(V x, const float*) { return softplus(x); }
EDDY_INLINE V mish_of(V x, const float*) { return x * tanh(softplus(x)); }
EDDY_INLINE V swish_of(V x, const float* p) { return x * sigmoid(p[0] * x); }
EDDY_INLINE V elu_of(V x, const float* p) { return x < 0.0f ? p[0] * expm1(x) : x; }
EDDY_INLINE V celu_of(V x, const float* p) { return x < 0.0f ? p[0] * expm1(x / p[0]) : x; }
EDDY_INLINE V selu_of(V x, const float* p) { return p[1] * (x > 0.0f ? x : p[0] * expm1(x)); }

template <typename From, typename To>
void cast_loop(const void* in, void* out, int64_t count) {
  const From* x = static_cast<const From*>(in);
  To* y = static_cast<To*>(out);
  for (int64_t i = 0; i < count; ++i) y[i] = scalar::convert<To>(x[i]);
}
template <typename From, typename... Tos>
constexpr void put_casts_from(LoopSet& set) {
  CastLoop* row = set.cast[static_cast<int>(kLoopTypeOf<From>)];
  ((row[static_cast<int>(kLoopTypeOf<Tos>)] = cast_loop<From, Tos>), ...);
}
template <typename... Ts>
constexpr void put_casts(LoopSet& set) {
  (put_casts_from<Ts, Ts...>(set), ...);
}

template <typename T, bool SingleC, bool SingleX, bool SingleY>
void select_body(const bool* c, const T* x, const T* y, T* out, int64_t count) {
  // By masks: the compiler makes a jump of a choice between what it loads and a constant, and jumps
  // that depend on data are guessed wrongly. Conditions are read as bytes: what is not 0 is true,
  // also where a caller's memory holds another byte than 1.
  const auto* const bytes = reinterpret_cast<const unsigned char*>(c);
  const T one_x = SingleX && count > 0 ? x[0] : T(), one_y = SingleY && count > 0 ? y[0] : T();
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const T from_x = SingleX ? one_x : x[i];
    const T from_y = SingleY ? one_y : y[i];
    const T mask = static_cast<T>(-static_cast<T>(bytes[SingleC ? 0 : i] != 0));
    out[i] = static_cast<T>((from_x & mask) | (from_y & static_cast<T>(~mask)));
  }
}
template <typename T>
void select_loop(const bool* c, const void* x, const void* y, void* out, int64_t count,
                 unsigned single) {
  using Body = void (*)(const bool*, const T*, const T*, T*, int64_t);
  constexpr Body kBodies[8] = {
      select_body<T, false, false, false>, select_body<T, true, false, false>,
      select_body<T, false, true, false>,  select_body<T, true, true, false>,
      select_body<T, false, false, true>,  select_body<T, true, false, true>,
      select_body<T, false, true, true>,   select_body<T, true, true, true>};
  kBodies[single](c, static_cast<const T*>(x), static_cast<const T*>(y), static_cast<T*>(out),
                  count);
}

// Squares are common and exact as products.
template <typename T>
void pow_scalar_loop(const void* a, const void* b, void* out, int64_t count) {
  const T exponent = *static_cast<const T*>(b);
  if (exponent == T(2))
    both_loop<scalar::Mul, T, T>(a, a, out, count);
  else
    right_scalar_loop<scalar::Pow, T, T>(a, b, out, count);
}

constexpr void put_binary_loops(LoopSet& set) {
  using B = BinaryOp;
  put_arithmetic<scalar::Add, float, double, int32_t, int64_t>(set, B::kAdd);
  put_arithmetic<scalar::Sub, float, double, int32_t, int64_t>(set, B::kSub);
  put_arithmetic<scalar::Mul, float, double, int32_t, int64_t>(set, B::kMul);
  put_arithmetic<scalar::Div, float, double, int32_t, int64_t>(set, B::kDiv);
  put_arithmetic<scalar::FloorMod, int32_t, int64_t>(set, B::kFloorMod);
  put_arithmetic<scalar::Fmod, float, int32_t, int64_t>(set, B::kFmod);
  put_arithmetic<scalar::Pow, float, double>(set, B::kPow);
  set.binary[static_cast<int>(B::kPow)][static_cast<int>(LoopType::kFloat)].right_scalar =
      pow_scalar_loop<float>;
  put_arithmetic<scalar::Max, float, double, int32_t, int64_t>(set, B::kMax);
  put_arithmetic<scalar::Min, float, double, int32_t, int64_t>(set, B::kMin);
  put_arithmetic<scalar::Prelu, float, int32_t, int64_t>(set, B::kPrelu);
  put_arithmetic<scalar::And, bool>(set, B::kAnd);
  put_arithmetic<scalar::Or, bool>(set, B::kOr);
  put_arithmetic<scalar::Xor, bool>(set, B::kXor);
  put_comparison<scalar::Equal, float, double, int32_t, int64_t, bool>(set, B::kEqual);
  put_comparison<scalar::Greater, float, double, int32_t, int64_t>(set, B::kGreater);
  put_comparison<scalar::GreaterOrEqual, float, double, int32_t, int64_t>(set, B::kGreaterOrEqual);
  put_comparison<scalar::Less, float, double, int32_t, int64_t>(set, B::kLess);
  put_comparison<scalar::LessOrEqual, float, double, int32_t, int64_t>(set, B::kLessOrEqual);
}

constexpr void put_unary_loops(LoopSet& set) {
  using U = UnaryOp;
#define EDDY_PUT_PLAIN(name, ...) put_plain<scalar::name, __VA_ARGS__>(set, U::k##name);
  EDDY_SCALAR_UNARY(EDDY_PUT_PLAIN)
#undef EDDY_PUT_PLAIN
  put_vector<exp_of>(set, U::kExp);
  put_vector<log_of>(set, U::kLog);
  put_vector<sigmoid_of>(set, U::kSigmoid);
  put_vector<tanh_of>(set, U::kTanh);
  put_vector<erf_of>(set, U::kErf);
  put_vector<gelu_of>(set, U::kGelu);
  put_vector<gelu_tanh_of>(set, U::kGeluTanh);
  put_vector<softplus_of>(set, U::kSoftplus);
  put_vector<mish_of>(set, U::kMish);
  put_vector<swish_of>(set, U::kSwish);
  put_vector<elu_of>(set, U::kElu);
  put_vector<celu_of>(set, U::kCelu);
  put_vector<selu_of>(set, U::kSelu);
}

constexpr void put_other_loops(LoopSet& set) {
  put_casts<float, double, int32_t, int64_t, bool, int8_t, uint8_t>(set);
  set.is_nan_float = is_nan_loop<float>;
  set.is_nan_double = is_nan_loop<double>;
  set.add_product_4 = add_product_loop<uint32_t>;
  set.add_product_8 = add_product_loop<uint64_t>;
  set.select_1 = select_loop<uint8_t>;
  set.select_4 = select_loop<uint32_t>;
  set.select_8 = select_loop<uint64_t>;
}

}  // namespace
}  // namespace eddy::cpu
