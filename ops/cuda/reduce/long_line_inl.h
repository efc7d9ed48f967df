// What CUB's algorithms are given for long lines: how an element enters a sum, a comparison or a
// sort, how two are combined, and how a result is stored; for nvcc and for tests on the host, where
// plain loops stand for CUB.
//
// An extreme is the greatest of keys: unsigned words in the order of the elements, so that one
// comparison serves all types and both directions. -0 has the key of 0; NaN has the greatest one,
// in both directions for an extreme. A sort is one of keys, too, in which NaN is greater than every
// number, whatever comes first having the least.
//
// Sums are held in what our own kernels hold them in (row_inl.h): double, or words that wrap.
#pragma once

#include <cstring>

#include "ops/cuda/reduce/cub_calls.h"
#include "ops/cuda/reduce/row_inl.h"

namespace eddy::cuda {

// Calls visit(T{}) with the line's type. False: the type is no float; no integer; neither.
template <typename Visit>
bool visit_float_type(LineType type, Visit visit) {
  switch (type) {
    case LineType::kF32:
      return visit(f32{}), true;
    case LineType::kF64:
      return visit(f64{}), true;
    case LineType::kF16:
      return visit(f16{}), true;
    case LineType::kBf16:
      return visit(bf16{}), true;
    default:
      return false;
  }
}
template <typename Visit>
bool visit_integer_type(LineType type, Visit visit) {
  switch (type) {
    case LineType::kI8:
      return visit(i8{}), true;
    case LineType::kU8:
      return visit(u8{}), true;
    case LineType::kI32:
      return visit(i32{}), true;
    case LineType::kI64:
      return visit(i64{}), true;
    default:
      return false;
  }
}
template <typename Visit>
bool visit_line_type(LineType type, Visit visit) {
  return visit_float_type(type, visit) || visit_integer_type(type, visit);
}

template <typename T>
EDDY_HD T line_element(const LongLine& line, uint64_t j) {
  return static_cast<const T*>(line.in)[static_cast<int64_t>(j) * line.stride];
}

// ---- sums ----

template <typename T>
struct SumTerms {
  SumCall call;
  EDDY_HD sum_t<T> operator()(uint64_t j) const {
    const auto x = static_cast<sum_t<T>>(load(line_element<T>(call.line, j)));
    if constexpr (std::is_floating_point_v<sum_t<T>>) {
      if (call.sum == LineSum::kL1) return std::fabs(x);
      if (call.sum == LineSum::kL2 || call.sum == LineSum::kSumSquare) return x * x;
    }
    return x;
  }
};

template <typename T>
struct SumJoin {
  bool is_product;
  EDDY_HD sum_t<T> operator()(sum_t<T> a, sum_t<T> b) const { return is_product ? a * b : a + b; }
  EDDY_HD sum_t<T> start() const { return is_product ? 1 : 0; }
};

template <typename T>
struct SumStore {
  SumCall call;
  EDDY_HD sum_t<T> finish(sum_t<T> sum) const {
    if constexpr (std::is_floating_point_v<sum_t<T>>) {
      if (call.sum == LineSum::kMean) {
        return ReduceMean::finish(sum, static_cast<double>(call.line.length));
      }
      if (call.sum == LineSum::kL2) return ReduceL2::finish(sum, 0);
      if (call.sum == LineSum::kLogSum) return ReduceLogSum::finish(sum, 0);
    }
    return sum;
  }
  EDDY_HD void operator()(uint64_t, sum_t<T> sum) const {
    *static_cast<T*>(call.line.out) = round_sum<T>(finish(sum));
  }
};

// ---- keys ----

template <size_t kBytes>
struct Word;
template <>
struct Word<1> {
  using type = uint8_t;
};
template <>
struct Word<2> {
  using type = uint16_t;
};
template <>
struct Word<4> {
  using type = uint32_t;
};
template <>
struct Word<8> {
  using type = uint64_t;
};
template <typename T>
using word_t = typename Word<sizeof(T)>::type;

// Words in the order of the elements; zeros are equal, NaNs are equal and the greatest.
template <typename T>
EDDY_HD word_t<T> order_key(T x) {
  constexpr auto kSign = static_cast<word_t<T>>(uint64_t{1} << (8 * sizeof(T) - 1));
  word_t<T> bits;
  std::memcpy(&bits, &x, sizeof(T));
  if constexpr (std::is_floating_point_v<computed_t<T>>) {
    if (is_nan(load(x))) return static_cast<word_t<T>>(~word_t<T>{0});
    if (load(x) == 0) return kSign;
    return static_cast<word_t<T>>((bits & kSign) != 0 ? ~bits : bits | kSign);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<word_t<T>>(bits ^ kSign);
  } else {
    return bits;
  }
}

// ---- extremes ----

struct Extreme {
  uint64_t key;
  int64_t place;
};

template <typename T>
struct ExtremeItems {
  ExtremeCall call;
  EDDY_HD Extreme operator()(uint64_t j) const {
    const T x = line_element<T>(call.line, j);
    word_t<T> key = order_key(x);
    if (call.is_least != 0 && !is_nan(load(x))) key = static_cast<word_t<T>>(~key);
    return {key, static_cast<int64_t>(j)};
  }
};

struct ExtremeJoin {
  bool takes_last;
  EDDY_HD Extreme operator()(const Extreme& a, const Extreme& b) const {
    if (a.key != b.key) return a.key > b.key ? a : b;
    return (a.place < b.place) != takes_last ? a : b;
  }
  // Loses to every element.
  EDDY_HD Extreme start() const { return {0, takes_last ? -1 : INT64_MAX}; }
};

template <typename T>
struct ExtremeStore {
  ExtremeCall call;
  EDDY_HD void operator()(uint64_t, const Extreme& best) const {
    if (call.gives_place != 0) {
      *static_cast<int64_t*>(call.line.out) = best.place;
    } else {
      *static_cast<T*>(call.line.out) =
          line_element<T>(call.line, static_cast<uint64_t>(best.place));
    }
  }
};

// ---- running sums of integers ----

// Where the j-th sum goes.
EDDY_HD uint64_t cum_sum_place(const CumSumCall& call, uint64_t j) {
  return call.is_reverse != 0 ? call.line.length - 1 - j : j;
}

template <typename T>
struct CumSumTerms {
  CumSumCall call;
  EDDY_HD uint64_t operator()(uint64_t j) const {
    return static_cast<uint64_t>(line_element<T>(call.line, cum_sum_place(call, j)));
  }
};

// Stores the sum up to element j and with it; an exclusive sum takes the element away again: words
// wrap.
template <typename T>
struct CumSumStore {
  CumSumCall call;
  EDDY_HD void operator()(uint64_t j, uint64_t sum) const {
    if (call.is_exclusive != 0) sum -= CumSumTerms<T>{call}(j);
    const auto at = static_cast<int64_t>(cum_sum_place(call, j)) * call.line.stride;
    static_cast<T*>(call.line.out)[at] = static_cast<T>(sum);
  }
};

// ---- the k first ----

// What keys are sorted as, by kSortBits of them: two types, since each is a copy of the sort.
template <typename T>
using sort_word_t = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <typename T>
inline constexpr int kSortBits = 8 * sizeof(T);

template <typename T>
struct SortKeys {
  TopKCall call;
  EDDY_HD sort_word_t<T> operator()(uint64_t j) const {
    const word_t<T> key = order_key(line_element<T>(call.line, j));
    return call.is_largest != 0 ? static_cast<word_t<T>>(~key) : key;
  }
};

template <typename T>
struct TopStore {
  TopKCall call;
  EDDY_HD void operator()(uint64_t rank, uint32_t place) const {
    const int64_t at = static_cast<int64_t>(rank) * call.line.stride;
    static_cast<T*>(call.line.out)[at] = line_element<T>(call.line, place);
    if (call.places != nullptr) call.places[at] = place;
  }
};

}  // namespace eddy::cuda
