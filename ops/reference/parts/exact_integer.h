// Means, norms and logarithms of integers: gathered exactly, cut towards zero once.
//
// ONNX gives these reductions of integers no other meaning than that of the real number, so the
// real number it is: sums of values and of squares are kept in 128 bits, and what no integer type
// holds becomes the nearest value that it does hold (a norm above the highest, log 0 the lowest);
// the logarithm of a negative sum, which is no number, becomes 0. (ONNX Runtime 1.30 goes through
// double, and so loses the low bits of large values.)
//
//   mean               sum / count
//   norm               floor(sqrt(sum of squares))
//   log                log(sum)
//   log of a sum of exponentials   m + log(sum of exp(x - m)), m the greatest; only the second
//                      term is a double, and it is at most log(count)
//
// Cost: a few instructions for each element, no allocation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "graph/base/check.h"
#include "ops/reference/parts/number.h"

namespace eddy {

// Holds the sum of any tensor's elements.
using WideSum = __int128;

// A sum of squares; it stays at its highest once it would exceed that, as its root exceeds all
// types then.
struct SquareSum {
  unsigned __int128 total = 0;

  template <typename T>
  void add(T x) {
    const uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    const unsigned __int128 square = static_cast<unsigned __int128>(magnitude) * magnitude;
    if (__builtin_add_overflow(total, square, &total)) total = ~static_cast<unsigned __int128>(0);
  }

  // floor(sqrt(total))
  uint64_t root() const {
    const long double guess = std::sqrt(static_cast<long double>(total));
    uint64_t root = guess >= 0x1p64L ? UINT64_MAX : static_cast<uint64_t>(guess);
    const auto square = [](uint64_t x) { return static_cast<unsigned __int128>(x) * x; };
    while (square(root) > total) --root;
    while (root < UINT64_MAX && square(root + 1) <= total) ++root;
    return root;
  }
};

template <typename T>
T exact_mean(WideSum sum, int64_t count) {
  return count == 0 ? T(0) : static_cast<T>(sum / count);
}

template <typename T>
T exact_norm(const SquareSum& squares) {
  return static_cast<T>(
      std::min(squares.root(), static_cast<uint64_t>(std::numeric_limits<T>::max())));
}

template <typename T>
T exact_log(WideSum sum) {
  return saturate<T>(std::log(static_cast<double>(sum)));
}

// exp(x - greatest)
template <typename T>
double exp_below(T x, T greatest) {
  EDDY_DCHECK(x <= greatest) << x << " is above " << greatest;
  return std::exp(-static_cast<double>(static_cast<uint64_t>(greatest) - static_cast<uint64_t>(x)));
}

// `total`: of exp_below, at least 1.
template <typename T>
T exact_log_sum_exp(T greatest, double total) {
  constexpr int64_t kFar = 1 << 20;  // from zero: more than any log(total)
  const double rest = std::log(total);
  const auto wide = static_cast<WideSum>(greatest);
  if (wide > -kFar && wide < kFar) return saturate<T>(static_cast<double>(greatest) + rest);
  const auto cut = static_cast<WideSum>(wide < 0 ? std::ceil(rest) : std::floor(rest));
  return static_cast<T>(std::min<WideSum>(wide + cut, std::numeric_limits<T>::max()));
}

}  // namespace eddy
