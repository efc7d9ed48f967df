// The reduction and softmax loops on floats; included by one source file for each instruction
// set.
//
// A fold keeps four vectors of partial results, lane i of vector j holding the elements congruent
// to j * width + i, and joins them in a fixed tree: the order depends on the count alone.
#pragma once

#include <utility>

#include "ops/cpu/loops/elementwise_inl.h"

// Partial results are named by constants, and so stay in registers.
#ifdef __clang__
#define EDDY_UNROLL_4 _Pragma("unroll")
#else
#define EDDY_UNROLL_4 _Pragma("GCC unroll 4")
#endif

namespace eddy::cpu {
namespace {

struct SumFold {
  static constexpr float kNeutral = 0;
  EDDY_INLINE V first(V x) { return x; }
  EDDY_INLINE V join(V a, V b) { return a + b; }
};
// A NaN stays, as in scalar::Max.
struct MaxFold {
  static constexpr float kNeutral = -__builtin_inff();
  EDDY_INLINE V first(V x) { return x; }
  EDDY_INLINE V join(V a, V b) { return ((a > b) | (a != a)) ? a : b; }
};
struct MinFold {
  static constexpr float kNeutral = __builtin_inff();
  EDDY_INLINE V first(V x) { return x; }
  EDDY_INLINE V join(V a, V b) { return ((a < b) | (a != a)) ? a : b; }
};
struct ProdFold {
  static constexpr float kNeutral = 1;
  EDDY_INLINE V first(V x) { return x; }
  EDDY_INLINE V join(V a, V b) { return a * b; }
};
struct SumAbsFold : SumFold {
  EDDY_INLINE V first(V x) { return abs(x); }
};
struct SumSquareFold : SumFold {
  EDDY_INLINE V first(V x) { return x * x; }
};

// Lane i is lane i + kHalf of x below kHalf, lane i from there on.
template <int kHalf, int... kLane>
EDDY_INLINE V upper_half(V x, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(x, x, (kLane < kHalf ? kLane + kHalf : kLane)...);
}

// Joins the lanes of one vector pairwise: i with i + width/2, and so on.
template <typename Fold, int kHalf = kWidth / 2>
EDDY_INLINE float join_lanes(V x) {
  if constexpr (kHalf == 0) {
    return x[0];
  } else {
    const V upper = upper_half<kHalf>(x, std::make_integer_sequence<int, kWidth>());
    return join_lanes<Fold, kHalf / 2>(Fold::join(x, upper));
  }
}

template <typename Fold>
float fold_loop(const float* in, int64_t count) {
  V totals[4];
  for (V& total : totals) total = set1(Fold::kNeutral);
  int64_t i = 0;
  for (; i + 4 * kWidth <= count; i += 4 * kWidth) {
    for (int j = 0; j < 4; ++j) {
      totals[j] = Fold::join(totals[j], Fold::first(load(in + i + j * kWidth)));
    }
  }
  EDDY_UNROLL_4
  for (int j = 0; j < 4; ++j, i += kWidth) {
    const int64_t rest = count - i;
    if (rest <= 0) continue;
    const V x = rest >= kWidth ? load(in + i) : load_first(in + i, rest, Fold::kNeutral);
    totals[j] = Fold::join(totals[j], Fold::first(x));
  }
  return join_lanes<Fold>(
      Fold::join(Fold::join(totals[0], totals[2]), Fold::join(totals[1], totals[3])));
}

template <typename Fold, bool Starts>
void fold_row_loop(const float* in, float* totals, int64_t count) {
  for (int64_t i = 0; i < count; i += kWidth) {
    const int64_t rest = count - i;
    const bool is_whole = rest >= kWidth;
    V x = Fold::first(is_whole ? load(in + i) : load_first(in + i, rest, 0));
    if constexpr (!Starts) {
      x = Fold::join(is_whole ? load(totals + i) : load_first(totals + i, rest, 0), x);
    }
    if (is_whole)
      store(totals + i, x);
    else
      store_first(totals + i, x, rest);
  }
}

template <typename Fold>
constexpr void put_fold(LoopSet& set, ReduceOp op) {
  set.reduce[static_cast<int>(op)] = {fold_loop<Fold>, fold_row_loop<Fold, true>,
                                      fold_row_loop<Fold, false>};
}

// Lanes beyond the end hold exp(-infinity) = 0.
template <bool Stores>
EDDY_INLINE float exp_sum_body(const float* in, float* out, int64_t count, float shift) {
  V total = V{};
  for (int64_t i = 0; i < count; i += kWidth) {
    const int64_t rest = count - i;
    const bool is_whole = rest >= kWidth;
    const V x = is_whole ? load(in + i) : load_first(in + i, rest, -__builtin_inff());
    const V e = exp(x - shift);
    total += e;
    if constexpr (Stores) {
      if (is_whole)
        store(out + i, e);
      else
        store_first(out + i, e, rest);
    }
  }
  return join_lanes<SumFold>(total);
}
float exp_sum_loop(const float* in, float* out, int64_t count, float shift) {
  return exp_sum_body<true>(in, out, count, shift);
}
float exp_sum_only_loop(const float* in, int64_t count, float shift) {
  return exp_sum_body<false>(in, nullptr, count, shift);
}
void scale_loop(const float* in, float* out, int64_t count, float factor) {
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] * factor;
}
void subtract_loop(const float* in, float* out, int64_t count, float shift) {
  EDDY_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] - shift;
}

constexpr void put_reduce_loops(LoopSet& set) {
  put_fold<SumFold>(set, ReduceOp::kSum);
  put_fold<MaxFold>(set, ReduceOp::kMax);
  put_fold<MinFold>(set, ReduceOp::kMin);
  put_fold<ProdFold>(set, ReduceOp::kProd);
  put_fold<SumAbsFold>(set, ReduceOp::kSumAbs);
  put_fold<SumSquareFold>(set, ReduceOp::kSumSquare);
  set.softmax = {exp_sum_loop, exp_sum_only_loop, scale_loop, subtract_loop};
}

}  // namespace
}  // namespace eddy::cpu
