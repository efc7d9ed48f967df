// Times of the simulator: int64_t (exact) or double, and what both can do.
//
// A simulation is a template on its time. Integers add exactly or report overflow; doubles add as
// doubles do, and overflow is infinity. Every time is >= 0, so that both order as their bits do:
// key() turns a time into an unsigned number with the same order, which is what heaps compare.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "graph/base/check.h"

namespace eddy {

template <typename T>
concept TimeValue = std::same_as<T, int64_t> || std::same_as<T, double>;

// A valid execution time: finite and not negative.
template <TimeValue Time>
bool is_valid_time(Time time) {
  if constexpr (std::same_as<Time, double>) {
    return std::isfinite(time) && time >= 0;
  } else {
    return time >= 0;
  }
}

// -0.0 becomes 0.0: their bits differ and they are the same time.
template <TimeValue Time>
Time normalized_time(Time time) {
  return time + Time{0};
}

template <TimeValue Time>
uint64_t time_key(Time time) {
  EDDY_DCHECK(std::bit_cast<int64_t>(time) >= 0) << time << " orders behind all times";
  return std::bit_cast<uint64_t>(time);
}

// The sum, or the largest time of all where it does not fit; sum_overflows() detects that.
template <TimeValue Time>
Time add_times(Time a, Time b) {
  if constexpr (std::same_as<Time, double>) {
    return a + b;
  } else {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
  }
}

// Whether the sum does not fit its type.
template <TimeValue Time>
bool sum_overflows(Time a, Time b) {
  if constexpr (std::same_as<Time, double>) {
    return !(a + b <= std::numeric_limits<double>::max());
  } else {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum);
  }
}

// What add_times() made of a sum that did not fit; but the largest integer may be a sum that does.
template <TimeValue Time>
bool may_be_overflow(Time time) {
  if constexpr (std::same_as<Time, double>) {
    return !(time <= std::numeric_limits<double>::max());
  } else {
    return time == std::numeric_limits<int64_t>::max();
  }
}

}  // namespace eddy
