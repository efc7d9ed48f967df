// Rows of windows of one vector a position (WindowArgs), over S and under the rules of tile_inl.h.
//
// Common widths and strides are unrolled: each input that some neighbouring windows share is loaded
// once, and the weights of a row of taps stay in registers. Taps beside the image are left out: a
// weight there may be anything.
#pragma once

#include "ops/cpu/tile/product_inl.h"
#include "ops/cpu/tile/tile.h"

// Whole loops, of at most 32 turns.
#ifdef __clang__
#define EDDY_UNROLL_WHOLE _Pragma("unroll")
#else
#define EDDY_UNROLL_WHOLE _Pragma("GCC unroll 32")
#endif

namespace eddy::cpu {
namespace {

template <typename S>
struct MaxFold {
  using V = typename S::V;
  static constexpr bool kWeighs = false;
  static V start(const WindowArgs&) { return S::set1(-__builtin_inff()); }
  // A NaN stays, wherever it comes from.
  static V add(V best, V x, V) { return S::select_nan(best, best, S::max(best, x)); }
  static V end(const WindowArgs&, V best, int64_t) { return best; }
};

template <typename S>
struct SumFold {
  using V = typename S::V;
  static constexpr bool kWeighs = false;
  static V start(const WindowArgs&) { return S::zero(); }
  static V add(V sum, V x, V) { return S::add(sum, x); }
  static V end(const WindowArgs& t, V sum, int64_t position) {
    return S::div(sum, S::set1(t.divisors[position]));
  }
};

template <typename S>
struct ProductFold {
  using V = typename S::V;
  static constexpr bool kWeighs = true;
  static V start(const WindowArgs& t) {
    return t.start_or_null ? S::load(t.start_or_null) : S::zero();
  }
  static V add(V sum, V x, V weight) { return S::fma(x, weight, sum); }
  static V end(const WindowArgs& t, V sum, int64_t position) {
    if (t.add_or_null) sum = S::add(sum, S::load(t.add_or_null + position * S::kWidth));
    return t.clamp_or_null ? clamped<S>(sum, t.clamp_or_null) : sum;
  }
};

template <typename S, typename Fold, int N>
[[gnu::always_inline]] inline void end_windows(const WindowArgs& t, int64_t first,
                                               const typename S::V (&values)[N]) {
  EDDY_UNROLL for (int i = 0; i < N; ++i) {
    S::store(t.y + (first + i) * S::kWidth, Fold::end(t, values[i], first + i));
  }
}

// N windows of C neighbouring columns, kStride apart. kEdge: some columns may lie beside the image,
// but all of no window.
template <typename S, typename Fold, int N, int C, int kStride, bool kEdge>
[[gnu::always_inline]] inline void fold_columns(const WindowArgs& t, int64_t first) {
  using V = typename S::V;
  constexpr int kInputs = (N - 1) * kStride + C;
  const int64_t column = t.first_column + first * kStride;
  const float* x = t.x + column * S::kWidth;
  const float* weights = t.weights_or_null;
  V values[N];
  EDDY_UNROLL for (int i = 0; i < N; ++i) values[i] = Fold::start(t);
  for (int64_t row = 0; row < t.num_rows; ++row, x += t.row_step) {
    V w[C];
    EDDY_UNROLL for (int c = 0; c < C; ++c) {
      w[c] = Fold::kWeighs ? S::load(weights + c * S::kWidth) : S::zero();
    }
    if constexpr (Fold::kWeighs) weights += C * S::kWidth;
    EDDY_UNROLL_WHOLE for (int j = 0; j < kInputs; ++j) {
      const bool may_be_beside = kEdge && (j < C - 1 || j > kInputs - C);
      if (may_be_beside && (column + j < 0 || column + j >= t.width)) continue;
      const V v = S::load(x + j * S::kWidth);
      EDDY_UNROLL for (int c = 0; c < C; ++c) {
        const int i = (j - c) / kStride;
        if (j < c || (j - c) % kStride != 0 || i >= N) continue;
        values[i] = Fold::add(values[i], v, w[c]);
      }
    }
  }
  end_windows<S, Fold>(t, first, values);
}

// N windows, of each the columns [begin, end).
template <typename S, typename Fold, int N>
[[gnu::always_inline]] inline void fold_taps(const WindowArgs& t, int64_t first, int64_t begin,
                                             int64_t end) {
  using V = typename S::V;
  const int64_t step = t.stride * S::kWidth;
  const float* x = t.x + (t.first_column + first * t.stride) * S::kWidth;
  V values[N];
  EDDY_UNROLL for (int i = 0; i < N; ++i) values[i] = Fold::start(t);
  for (int64_t row = 0; row < t.num_rows; ++row, x += t.row_step) {
    const float* const weights =
        Fold::kWeighs ? t.weights_or_null + row * t.num_columns * S::kWidth : nullptr;
    for (int64_t c = begin; c < end; ++c) {
      const V w = Fold::kWeighs ? S::load(weights + c * S::kWidth) : S::zero();
      const float* const from = x + c * t.dilation * S::kWidth;
      EDDY_UNROLL for (int i = 0; i < N; ++i) {
        values[i] = Fold::add(values[i], S::load(from + i * step), w);
      }
    }
  }
  end_windows<S, Fold>(t, first, values);
}

// The columns of a window that lie inside the image.
template <typename S, typename Fold>
void fold_live_taps(const WindowArgs& t, int64_t at) {
  const int64_t start = t.first_column + at * t.stride, room = t.width - start;
  int64_t begin = start >= 0 ? 0 : (-start + t.dilation - 1) / t.dilation;
  int64_t end = room <= 0 ? 0 : (room + t.dilation - 1) / t.dilation;
  if (end > t.num_columns) end = t.num_columns;
  if (begin > end) begin = end;
  fold_taps<S, Fold, 1>(t, at, begin, end);
}

template <typename S, typename Fold, int N, int C, int kStride>
[[gnu::always_inline]] inline void fold_some(const WindowArgs& t, int64_t first) {
  const int64_t column = t.first_column + first * kStride;
  const int64_t end = column + (N - 1) * kStride + C;
  if (column >= 0 && end <= t.width) {
    fold_columns<S, Fold, N, C, kStride, false>(t, first);
  } else if (column > -C && end < t.width + C) {
    fold_columns<S, Fold, N, C, kStride, true>(t, first);
  } else {
    for (int64_t i = 0; i < N; ++i) fold_live_taps<S, Fold>(t, first + i);
  }
}

template <typename S, typename Fold, int C, int kStride>
void fold_row_of(const WindowArgs& t) {
  int64_t at = 0;
  // Rows of 7, 14 and 28, as networks for images have: parts of one size, none of them small.
  if (t.count % 7 == 0 && t.count % 8 != 0) {
    for (; at < t.count; at += 7) fold_some<S, Fold, 7, C, kStride>(t, at);
    return;
  }
  for (; at + 8 <= t.count; at += 8) fold_some<S, Fold, 8, C, kStride>(t, at);
  if (at + 4 <= t.count) fold_some<S, Fold, 4, C, kStride>(t, at), at += 4;
  if (at + 2 <= t.count) fold_some<S, Fold, 2, C, kStride>(t, at), at += 2;
  if (at < t.count) fold_some<S, Fold, 1, C, kStride>(t, at);
}

template <typename S, typename Fold>
void fold_any_row(const WindowArgs& t) {
  const int64_t extent = (t.num_columns - 1) * t.dilation + 1;
  const int64_t last = t.width - extent - t.first_column;  // of the image, for a whole window
  int64_t begin = t.first_column >= 0 ? 0 : (-t.first_column + t.stride - 1) / t.stride;
  int64_t end = last < 0 ? 0 : last / t.stride + 1;
  if (end > t.count) end = t.count;
  if (begin > end) begin = end;
  int64_t at = 0;
  for (; at < begin; ++at) fold_live_taps<S, Fold>(t, at);
  for (; at + 8 <= end; at += 8) fold_taps<S, Fold, 8>(t, at, 0, t.num_columns);
  if (at + 4 <= end) fold_taps<S, Fold, 4>(t, at, 0, t.num_columns), at += 4;
  if (at + 2 <= end) fold_taps<S, Fold, 2>(t, at, 0, t.num_columns), at += 2;
  for (; at < t.count; ++at) fold_live_taps<S, Fold>(t, at);
}

template <typename S, typename Fold>
void window_row(const WindowArgs& t) {
  const bool is_dense = t.dilation == 1;
  if (is_dense && t.num_columns == 3 && t.stride == 1) return fold_row_of<S, Fold, 3, 1>(t);
  if (is_dense && t.num_columns == 3 && t.stride == 2) return fold_row_of<S, Fold, 3, 2>(t);
  if (is_dense && t.num_columns == 5 && t.stride == 1) return fold_row_of<S, Fold, 5, 1>(t);
  if (is_dense && t.num_columns == 5 && t.stride == 2) return fold_row_of<S, Fold, 5, 2>(t);
  fold_any_row<S, Fold>(t);
}

}  // namespace
}  // namespace eddy::cpu
