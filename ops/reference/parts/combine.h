// What a scatter does where it meets an element: replace it, or combine it with the update.
//
// Integers wrap; half-precision types are combined in float; max and min keep NaN.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "ops/reference/parts/typed_kernel.h"

namespace eddy {

enum class Reduction : uint8_t { kNone, kAdd, kMultiply, kMax, kMin };

// The schema has checked the name.
inline Reduction reduction_of(std::string_view name) {
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMultiply;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return Reduction::kNone;
}

template <typename T>
T combine(Reduction reduction, const T& old, const T& update) {
  if constexpr (is_floating<T>) {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const Wide a = static_cast<Wide>(old), b = static_cast<Wide>(update);
    switch (reduction) {
      case Reduction::kNone:
        return update;
      case Reduction::kAdd:
        return static_cast<T>(a + b);
      case Reduction::kMultiply:
        return static_cast<T>(a * b);
      case Reduction::kMax:
        return a >= b || std::isnan(a) ? old : update;
      case Reduction::kMin:
        return a <= b || std::isnan(a) ? old : update;
    }
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t a = static_cast<uint64_t>(old), b = static_cast<uint64_t>(update);
    switch (reduction) {
      case Reduction::kNone:
        return update;
      case Reduction::kAdd:
        return static_cast<T>(a + b);
      case Reduction::kMultiply:
        return static_cast<T>(a * b);
      case Reduction::kMax:
        return std::max(old, update);
      case Reduction::kMin:
        return std::min(old, update);
    }
  }
  return update;  // strings and what is only moved
}

}  // namespace eddy
