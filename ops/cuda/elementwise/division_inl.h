// Integer division and remainder, for the device and for tests on the host: the elementwise
// operators that can fail. A zero divisor is reported, its result is 0.
//
// The record of faults is in[2] of ElementwiseParams. The lowest value by -1 wraps to itself.
#pragma once

#include "ops/cuda/device/fault_inl.h"
#include "ops/cuda/elementwise/elementwise_inl.h"

namespace eddy::cuda {

template <typename T>
inline constexpr bool is_signed = T(0) > T(-1);

template <typename T>
EDDY_HD bool is_minus_one(T y) {
  return is_signed<T> && y == static_cast<T>(-1);
}
struct IntegerDiv {
  static constexpr int32_t kFaultOp = 0;
  template <typename T>
  EDDY_HD static T apply(T x, T y) {
    return is_minus_one(y) ? static_cast<T>(0 - word(x)) : static_cast<T>(x / y);
  }
};
// C's: the sign of the dividend.
struct Remainder {
  static constexpr int32_t kFaultOp = 1;
  template <typename T>
  EDDY_HD static T apply(T x, T y) {
    return is_minus_one(y) ? T(0) : static_cast<T>(x % y);
  }
};
// Python's: the sign of the divisor.
struct Modulo {
  static constexpr int32_t kFaultOp = 1;
  template <typename T>
  EDDY_HD static T apply(T x, T y) {
    const T rest = Remainder::apply(x, y);
    if constexpr (is_signed<T>) {
      if (rest != 0 && (rest < 0) != (y < 0)) return static_cast<T>(rest + y);
    }
    return rest;
  }
};

template <typename Op, typename T>
EDDY_HD void run_division(const ElementwiseParams& p, uint64_t first, uint64_t step) {
  for (uint64_t item = first; item < p.count; item += step) {
    int64_t at[2];
    locate(p, item, at);
    const T x = input<T>(p, 0)[at[0]];
    const T y = input<T>(p, 1)[at[1]];
    if (y == 0) {
      report_fault(static_cast<DeviceFault*>(const_cast<void*>(p.in[2])), DeviceFault::kDivision,
                   Op::kFaultOp, at[1], 0);
    }
    static_cast<T*>(p.out)[item] = y == 0 ? T(0) : Op::apply(x, y);
  }
}

}  // namespace eddy::cuda
