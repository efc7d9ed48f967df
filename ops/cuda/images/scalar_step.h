// scalar_step: what an elementwise node does to one element of each of its values: a step that a
// thread interprets as a part of a launch that is made anyway (loop_control.h), so that a loop's
// counter and test, and what makes a carried value, cost no launch of their own.
// map_element: the same to one element of many.
//
// Functions and types are the cheap ones that counters, predicates and activations are made of;
// whatever else is a kernel of its own. The same bits as there: the functions are those of
// scalar_ops.h and unary_ops.h, rounded one by one. For the device and for tests on the host.
#pragma once

#include <cstdint>

#include "ops/cuda/device/unary_ops.h"

namespace eddy::cuda {

// X(op): of two numbers, to their type; of two of any type, to bool; of two bools; of one number;
// of one float. Beside them are Div of floats, Equal, Not, Where, Cast, and Set, whose result
// stands in the step itself.
#define EDDY_SCALAR_BINARY(X) X(Add) X(Sub) X(Mul) X(Max) X(Min)
#define EDDY_SCALAR_COMPARE(X) X(Less) X(LessOrEqual) X(Greater) X(GreaterOrEqual)
#define EDDY_SCALAR_LOGIC(X) X(And) X(Or) X(Xor)
#define EDDY_SCALAR_UNARY(X) X(Abs) X(Neg) X(Relu)
#define EDDY_SCALAR_REAL(X) X(Exp) X(Sigmoid) X(Sqrt) X(Tanh)

enum class ScalarOp : uint8_t {
#define EDDY_SCALAR_NAME(op) k##op,
  EDDY_SCALAR_BINARY(EDDY_SCALAR_NAME) EDDY_SCALAR_COMPARE(EDDY_SCALAR_NAME)
      EDDY_SCALAR_LOGIC(EDDY_SCALAR_NAME) EDDY_SCALAR_UNARY(EDDY_SCALAR_NAME)
          EDDY_SCALAR_REAL(EDDY_SCALAR_NAME) kDiv,
#undef EDDY_SCALAR_NAME
  kEqual,
  kNot,
  kWhere,
  kCast,
  kSet
};
// X(type, its size in bytes).
#define EDDY_SCALAR_TYPES(X) X(f32, 4) X(f64, 8) X(i32, 4) X(i64, 8) X(b8, 1)
enum class ScalarType : uint8_t {
#define EDDY_SCALAR_NAME(type, size) k_##type,
  EDDY_SCALAR_TYPES(EDDY_SCALAR_NAME)
#undef EDDY_SCALAR_NAME
};

struct ScalarStepParams {
  ScalarOp op;
  ScalarType type;  // of the inputs; of Where the second's and third's
  ScalarType to;    // of a Cast
  uint8_t reserved[5];
  const void* in[3];  // of Set: the first holds the bits of the result, an integer or bool
  void* out;
};
static_assert(sizeof(ScalarStepParams) == 40, "host and device share it");

// A step over `count` elements of its result.
struct MapParams {
  ScalarStepParams step;  // for element 0
  uint64_t count;
  uint8_t in_bytes[3];  // of an element; 0: one element serves all
  uint8_t out_bytes;
  uint8_t reserved[4];
};
static_assert(sizeof(MapParams) == 56, "host and device share it");

template <typename T>
EDDY_HD T scalar_in(const ScalarStepParams& p, int i) {
  return *static_cast<const T*>(p.in[i]);
}
template <typename T>
EDDY_HD void scalar_out(const ScalarStepParams& p, T value) {
  *static_cast<T*>(p.out) = value;
}

#define EDDY_SCALAR_APPLY(op) \
  case ScalarOp::k##op:       \
    return scalar_out(p, op::apply(x, scalar_in<decltype(x)>(p, 1)));
// Of one float; a switch over other types has no such case.
#define EDDY_SCALAR_APPLY_REAL(op)                                      \
  case ScalarOp::k##op:                                                 \
    if constexpr (is_real<T>) return scalar_out(p, op::apply(x, 0, 0)); \
    return;
#define EDDY_SCALAR_APPLY_ONE(op) \
  case ScalarOp::k##op:           \
    return scalar_out(p, op::apply(x, 0, 0));

EDDY_HD void scalar_of_bools(const ScalarStepParams& p) {
  const bool x = scalar_in<bool>(p, 0);
  switch (p.op) {
    EDDY_SCALAR_LOGIC(EDDY_SCALAR_APPLY)
    EDDY_SCALAR_APPLY(Equal)
    case ScalarOp::kNot:
      return scalar_out(p, !x);
    default:
      return;
  }
}

template <typename T>
EDDY_HD void scalar_of_numbers(const ScalarStepParams& p) {
  const T x = scalar_in<T>(p, 0);
  switch (p.op) {
    EDDY_SCALAR_BINARY(EDDY_SCALAR_APPLY)
    EDDY_SCALAR_COMPARE(EDDY_SCALAR_APPLY)
    EDDY_SCALAR_APPLY(Equal)
    EDDY_SCALAR_UNARY(EDDY_SCALAR_APPLY_ONE)
    EDDY_SCALAR_REAL(EDDY_SCALAR_APPLY_REAL)
    case ScalarOp::kDiv:
      if constexpr (is_real<T>) scalar_out(p, Div::apply(x, scalar_in<T>(p, 1)));
      return;
    default:
      return;
  }
}
#undef EDDY_SCALAR_APPLY
#undef EDDY_SCALAR_APPLY_ONE
#undef EDDY_SCALAR_APPLY_REAL

template <typename From>
EDDY_HD void scalar_cast(const ScalarStepParams& p) {
  switch (p.to) {
#define EDDY_SCALAR_CAST(type, size) \
  case ScalarType::k_##type:         \
    return scalar_out(p, convert<type>(scalar_in<From>(p, 0)));
    EDDY_SCALAR_TYPES(EDDY_SCALAR_CAST)
#undef EDDY_SCALAR_CAST
  }
}

template <typename T>
EDDY_HD void scalar_step_of(const ScalarStepParams& p) {
  if (p.op == ScalarOp::kWhere) {
    scalar_out(p, scalar_in<T>(p, scalar_in<bool>(p, 0) ? 1 : 2));
  } else if (p.op == ScalarOp::kCast) {
    scalar_cast<T>(p);
  } else if (p.op == ScalarOp::kSet) {
    // A byte as it is, which need not be a bool's.
    using Bits = std::conditional_t<sizeof(T) == 1, uint8_t, T>;
    const auto bits = reinterpret_cast<uint64_t>(p.in[0]);
    if constexpr (!is_real<T>) scalar_out(p, static_cast<Bits>(bits));
  } else if constexpr (sizeof(T) == 1) {
    scalar_of_bools(p);
  } else {
    scalar_of_numbers<T>(p);
  }
}

EDDY_HD void scalar_step(const ScalarStepParams& p) {
  switch (p.type) {
#define EDDY_SCALAR_STEP(type, size) \
  case ScalarType::k_##type:         \
    return scalar_step_of<type>(p);
    EDDY_SCALAR_TYPES(EDDY_SCALAR_STEP)
#undef EDDY_SCALAR_STEP
  }
}

EDDY_HD void map_element(const MapParams& p, uint64_t i) {
  ScalarStepParams at = p.step;
  for (int k = 0; k < 3; ++k) at.in[k] = static_cast<const char*>(at.in[k]) + i * p.in_bytes[k];
  at.out = static_cast<char*>(at.out) + i * p.out_bytes;
  scalar_step(at);
}

}  // namespace eddy::cuda
