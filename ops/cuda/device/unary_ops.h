// What one element of each operator of one input is; as scalar_ops.h.
#pragma once

#include "ops/cuda/device/scalar_ops.h"

namespace eddy::cuda {

// `a` and `b`: the node's attributes, in the order of its documentation, set when it is bound.
#define EDDY_UNARY_OP(Name, expression)                                               \
  struct Name {                                                                       \
    template <typename C>                                                             \
    EDDY_HD static C apply(C x, [[maybe_unused]] float a, [[maybe_unused]] float b) { \
      return expression;                                                              \
    }                                                                                 \
  };
template <typename C>
EDDY_HD C softplus(C x) {
  return x > C(0) ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
// max(0, min(1, x)); a NaN stays.
template <typename C>
EDDY_HD C unit_clamp(C x) {
  return x < C(0) ? C(0) : x > C(1) ? C(1) : x;
}
EDDY_UNARY_OP(Acos, std::acos(x))
EDDY_UNARY_OP(Acosh, std::acosh(x))
EDDY_UNARY_OP(Asin, std::asin(x))
EDDY_UNARY_OP(Asinh, std::asinh(x))
EDDY_UNARY_OP(Atan, std::atan(x))
EDDY_UNARY_OP(Atanh, std::atanh(x))
EDDY_UNARY_OP(Ceil, std::ceil(x))
EDDY_UNARY_OP(Cos, std::cos(x))
EDDY_UNARY_OP(Cosh, std::cosh(x))
EDDY_UNARY_OP(Erf, std::erf(x))
EDDY_UNARY_OP(Exp, std::exp(x))
EDDY_UNARY_OP(Floor, std::floor(x))
EDDY_UNARY_OP(Log, std::log(x))
EDDY_UNARY_OP(Reciprocal, C(1) / x)
EDDY_UNARY_OP(Round, std::rint(x))
EDDY_UNARY_OP(Sigmoid, C(1) / (C(1) + std::exp(-x)))
EDDY_UNARY_OP(Sin, std::sin(x))
EDDY_UNARY_OP(Sinh, std::sinh(x))
EDDY_UNARY_OP(Softplus, softplus(x))
EDDY_UNARY_OP(Sqrt, std::sqrt(x))
EDDY_UNARY_OP(Tanh, std::tanh(x))
EDDY_UNARY_OP(Tan, std::tan(x))
EDDY_UNARY_OP(Softsign, x / (C(1) + std::fabs(x)))
EDDY_UNARY_OP(Mish, x* std::tanh(softplus(x)))
EDDY_UNARY_OP(HardSwish, x* unit_clamp(x / C(6) + C(0.5)))
EDDY_UNARY_OP(Swish, x / (C(1) + std::exp(-C(a) * x)))
EDDY_UNARY_OP(HardSigmoid, unit_clamp(C(a) * x + C(b)))
EDDY_UNARY_OP(Elu, x < C(0) ? C(a) * std::expm1(x) : x)
EDDY_UNARY_OP(Celu, x < C(0) ? C(a) * std::expm1(x / C(a)) : x)
EDDY_UNARY_OP(Selu, C(b) * (x > C(0) ? x : C(a) * std::expm1(x)))
EDDY_UNARY_OP(ThresholdedRelu, x > C(a) ? x : C(0))
EDDY_UNARY_OP(Shrink, x<-C(b) ? x + C(a) : x> C(b) ? x - C(a) : C(0))
EDDY_UNARY_OP(Gelu, C(0.5) * x * std::erfc(-x * C(0.70710678118654752440)))
EDDY_UNARY_OP(GeluTanh,
              C(0.5) * x *
                  (C(1) + std::tanh(C(0.79788456080286535588) * (x + C(0.044715) * x * x * x))))
// Limits that are attributes.
EDDY_UNARY_OP(ClipTo, Clip::apply(x, C(a), C(b)))
// A sum of so many.
EDDY_UNARY_OP(DivideBy, x / C(a))
EDDY_UNARY_OP(Sign, x != x ? x : static_cast<C>((x > C(0)) - (x < C(0))))
EDDY_UNARY_OP(BitwiseNot, static_cast<C>(~x))
EDDY_UNARY_OP(LeakyRelu, x < C(0) ? C(a) * x : x)
EDDY_UNARY_OP(Relu, x < C(0) ? C(0) : x)
EDDY_UNARY_OP(Not, !x)
#undef EDDY_UNARY_OP
struct Neg {
  template <typename C>
  EDDY_HD static C apply(C x, float, float) {
    if constexpr (std::is_floating_point_v<C>) {
      return -x;
    } else {
      return static_cast<C>(0 - word(x));
    }
  }
};
struct Abs {
  template <typename C>
  EDDY_HD static C apply(C x, float a, float b) {
    if constexpr (std::is_floating_point_v<C>) {
      return std::fabs(x);
    } else {
      return x < 0 ? Neg::apply(x, a, b) : x;
    }
  }
};

// Tests of floats, to bool. `a` and `b` of IsInf: whether the positive and the negative one count.
struct IsNaN {
  template <typename C>
  EDDY_HD static bool apply(C x, float, float) {
    return x != x;
  }
};
struct IsInf {
  template <typename C>
  EDDY_HD static bool apply(C x, float a, float b) {
    const bool is_infinite = x == x && x - x != C(0);
    return is_infinite && (x > C(0) ? a != 0 : b != 0);
  }
};

}  // namespace eddy::cuda
