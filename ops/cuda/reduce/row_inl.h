// The bodies of kernels that look at many elements for each result: reductions, ArgMax and ArgMin,
// Softmax; what one thread does, for the device and for tests on the host.
//
// One thread takes one row at a time and walks it in order, so sums have the reference's order and
// the same bits from run to run. That is right for short rows; row_block_inl.h has long ones.
//
// Floats are gathered in double, integers as 64-bit words that wrap.
#pragma once

#include "ops/cuda/device/params.h"
#include "ops/cuda/device/scalar_ops.h"

namespace eddy::cuda {

EDDY_HD int64_t walk(uint64_t index, int32_t rank, const uint64_t* dims, const int64_t* strides) {
  int64_t offset = 0;
  for (int axis = rank - 1; axis > 0; --axis) {
    offset += static_cast<int64_t>(index % dims[axis]) * strides[axis];
    index /= dims[axis];
  }
  return rank > 0 ? offset + static_cast<int64_t>(index) * strides[0] : offset;
}
EDDY_HD int64_t row_start(const RowParams& p, uint64_t row) {
  return walk(row, p.num_kept, p.kept_dims, p.kept_strides);
}
EDDY_HD int64_t row_element(const RowParams& p, uint64_t j) {
  return walk(j, p.num_reduced, p.reduced_dims, p.reduced_strides);
}

// What sums of T are held in.
template <typename T>
using sum_t = std::conditional_t<std::is_floating_point_v<computed_t<T>>, double, uint64_t>;

template <typename T>
EDDY_HD T round_sum(double sum) {
  return store<T>(static_cast<computed_t<T>>(sum));
}
template <typename T>
EDDY_HD T round_sum(uint64_t sum) {
  return static_cast<T>(sum);
}

// S: the sum's type; `finish` gets the number of elements.
struct ReduceSum {
  template <typename S>
  EDDY_HD static S start() {
    return S(0);
  }
  template <typename S>
  EDDY_HD static S step(S sum, S x) {
    return sum + x;
  }
  // Joins two partial results.
  template <typename S>
  EDDY_HD static S join(S a, S b) {
    return a + b;
  }
  EDDY_HD static double finish(double sum, double) { return sum; }
  EDDY_HD static uint64_t finish(uint64_t sum, double) { return sum; }
};
struct ReduceProd : ReduceSum {
  template <typename S>
  EDDY_HD static S start() {
    return S(1);
  }
  template <typename S>
  EDDY_HD static S step(S sum, S x) {
    return sum * x;
  }
  template <typename S>
  EDDY_HD static S join(S a, S b) {
    return a * b;
  }
};
struct ReduceMean : ReduceSum {
  EDDY_HD static double finish(double sum, double count) { return sum / count; }
};
struct ReduceL1 : ReduceSum {
  template <typename S>
  EDDY_HD static S step(S sum, S x) {
    return sum + std::fabs(x);
  }
};
struct ReduceSumSquare : ReduceSum {
  template <typename S>
  EDDY_HD static S step(S sum, S x) {
    return sum + x * x;
  }
};
struct ReduceL2 : ReduceSumSquare {
  EDDY_HD static double finish(double sum, double) { return std::sqrt(sum); }
};
struct ReduceLogSum : ReduceSum {
  EDDY_HD static double finish(double sum, double) { return std::log(sum); }
};

template <typename Op, typename T>
EDDY_HD void run_reduce(const RowParams& p, uint64_t first, uint64_t step) {
  using Sum = sum_t<T>;
  const T* const in = static_cast<const T*>(p.in);
  for (uint64_t row = first; row < p.count; row += step) {
    const int64_t start = row_start(p, row);
    Sum sum = Op::template start<Sum>();
    for (uint64_t j = 0; j < p.length; ++j) {
      sum = Op::step(sum, static_cast<Sum>(load(in[start + row_element(p, j)])));
    }
    static_cast<T*>(p.out)[row] = round_sum<T>(Op::finish(sum, static_cast<double>(p.length)));
  }
}

template <typename C>
EDDY_HD bool is_nan(C x) {
  return x != x;
}
// Below and above all other values of T.
template <typename T>
EDDY_HD T lowest() {
  if constexpr (std::is_floating_point_v<computed_t<T>>) {
    return store<T>(static_cast<computed_t<T>>(-HUGE_VAL));
  } else if constexpr (static_cast<T>(-1) > T(0)) {
    return 0;
  } else {
    return static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1));
  }
}
template <typename T>
EDDY_HD T highest() {
  if constexpr (std::is_floating_point_v<computed_t<T>>) {
    return store<T>(static_cast<computed_t<T>>(HUGE_VAL));
  } else {
    return static_cast<T>(~static_cast<uint64_t>(lowest<T>()));
  }
}

struct ReduceMax {
  template <typename T>
  EDDY_HD static T of_nothing() {
    return lowest<T>();
  }
  template <typename C>
  EDDY_HD static bool beats(C a, C b) {
    return b < a;
  }
};
struct ReduceMin {
  template <typename T>
  EDDY_HD static T of_nothing() {
    return highest<T>();
  }
  template <typename C>
  EDDY_HD static bool beats(C a, C b) {
    return a < b;
  }
};

// The most extreme element; a NaN wins. Without elements: the value that every other element beats.
template <typename Op, typename T>
EDDY_HD void run_extreme(const RowParams& p, uint64_t first, uint64_t step) {
  const T* const in = static_cast<const T*>(p.in);
  for (uint64_t row = first; row < p.count; row += step) {
    const int64_t start = row_start(p, row);
    T best = p.length > 0 ? in[start] : Op::template of_nothing<T>();
    for (uint64_t j = 1; j < p.length && !is_nan(load(best)); ++j) {
      const T next = in[start + row_element(p, j)];
      if (is_nan(load(next)) || Op::beats(load(next), load(best))) best = next;
    }
    static_cast<T*>(p.out)[row] = best;
  }
}

struct ArgMax : ReduceMax {};
struct ArgMin : ReduceMin {};

// Whether a is more extreme than b, as any NaN is.
template <typename Op, typename C>
EDDY_HD bool is_beyond(C a, C b) {
  if (is_nan(b)) return false;
  return is_nan(a) || Op::beats(a, b);
}

// The first (last: takes_last) place of the most extreme element; a NaN is more extreme than any
// number.
template <typename Op, typename T>
EDDY_HD void run_arg(const RowParams& p, uint64_t first, uint64_t step) {
  const T* const in = static_cast<const T*>(p.in);
  for (uint64_t row = first; row < p.count; row += step) {
    const int64_t start = row_start(p, row);
    int64_t best = 0;
    auto champion = load(in[start]);
    for (uint64_t j = 1; j < p.length; ++j) {
      const auto next = load(in[start + row_element(p, j)]);
      if (!is_beyond<Op>(next, champion) &&
          !(p.takes_last != 0 && !is_beyond<Op>(champion, next))) {
        continue;
      }
      best = static_cast<int64_t>(j);
      champion = next;
    }
    static_cast<int64_t*>(p.out)[row] = best;
  }
}

struct Softmax {
  EDDY_HD static double value(double x, double total) { return std::exp(x) / total; }
};
struct LogSoftmax {
  EDDY_HD static double value(double x, double total) { return x - std::log(total); }
};

// Output and input have one layout and may be one buffer.
template <typename Op, typename T>
EDDY_HD void run_softmax(const RowParams& p, uint64_t first, uint64_t step) {
  const T* const in = static_cast<const T*>(p.in);
  for (uint64_t row = first; row < p.count; row += step) {
    const int64_t start = row_start(p, row);
    double greatest = -HUGE_VAL;
    for (uint64_t j = 0; j < p.length && !is_nan(greatest); ++j) {
      const double x = load(in[start + row_element(p, j)]);
      if (is_nan(x) || x > greatest) greatest = x;
    }
    double total = 0;
    for (uint64_t j = 0; j < p.length; ++j) {
      total += std::exp(static_cast<double>(load(in[start + row_element(p, j)])) - greatest);
    }
    for (uint64_t j = 0; j < p.length; ++j) {
      const int64_t at = start + row_element(p, j);
      const double x = static_cast<double>(load(in[at])) - greatest;
      static_cast<T*>(p.out)[at] = store<T>(static_cast<computed_t<T>>(Op::value(x, total)));
    }
  }
}

}  // namespace eddy::cuda
