// The tile loops, written once over a vector type S and included by one source file for each
// instruction set, which compiles with that set's flags. Everything here has internal linkage
// and calls no inline function of the standard library: a function shared with other files could
// be kept by the linker in a form that older processors cannot run.
//
// S offers: V, kWidth, kMaxRows, kMaxVectors, kShortRows, tall_rows(vectors) (0: none), zero(),
// set1(x), load(p), store(p, v), load_first(p, n) (zero beyond n), store_first(p, v, n), fma(a, b,
// c) = a * b + c, add, sub, mul, div, sum(v), exp2_int(v) (2 to the integral value v in -127..127),
// round(v), min and max (the second operand where one is a NaN), abs(v), copy_sign(magnitude,
// sign), select_less(a, b, x, y) = a < b ? x : y, select_nan(a, x, y) = a != a ? x : y.
//
// Sources: Winograd's transforms as in Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (CVPR 2016), section 4.3; exp, tanh by Cephes' single-precision polynomials (Moshier),
// evaluated with the range reduction described there.
#pragma once

#include "ops/cpu/tile/product_inl.h"
#include "ops/cpu/tile/tile.h"
#include "ops/cpu/tile/window_inl.h"

namespace eddy::cpu {
namespace {

template <typename S, int M>
void dot_some_rows(int64_t depth, const float* a, int64_t a_row, const float* x,
                   const float* add_or_null, float* y) {
  using V = typename S::V;
  constexpr int kUnroll = 2;
  V sums[kUnroll][M];
  EDDY_UNROLL for (int u = 0; u < kUnroll; ++u) EDDY_UNROLL for (int i = 0; i < M; ++i) sums[u][i] =
      S::zero();
  int64_t k = 0;
  for (; k + kUnroll * S::kWidth <= depth; k += kUnroll * S::kWidth) {
    EDDY_UNROLL for (int u = 0; u < kUnroll; ++u) {
      const int64_t at = k + u * S::kWidth;
      const V v = S::load(x + at);
      EDDY_UNROLL for (int i = 0; i < M; ++i) sums[u][i] =
          S::fma(S::load(a + i * a_row + at), v, sums[u][i]);
    }
  }
  for (; k < depth; k += S::kWidth) {
    const int count = depth - k < S::kWidth ? static_cast<int>(depth - k) : S::kWidth;
    const V v = S::load_first(x + k, count);
    EDDY_UNROLL for (int i = 0; i < M; ++i) sums[0][i] =
        S::fma(S::load_first(a + i * a_row + k, count), v, sums[0][i]);
  }
  EDDY_UNROLL for (int i = 0; i < M; ++i) {
    const float sum = S::sum(S::add(sums[0][i], sums[1][i]));
    y[i] = add_or_null ? add_or_null[i] + sum : sum;
  }
}

template <typename S>
void dot_rows(int64_t rows, int64_t depth, const float* a, int64_t a_row, const float* x,
              const float* add_or_null, float* y) {
  const auto add_at = [&](int64_t i) { return add_or_null ? add_or_null + i : nullptr; };
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    dot_some_rows<S, 4>(depth, a + i * a_row, a_row, x, add_at(i), y + i);
  }
  for (; i < rows; ++i) dot_some_rows<S, 1>(depth, a + i * a_row, a_row, x, add_at(i), y + i);
}

// e to the power x, clamped to the range of finite normal results; a NaN stays a NaN.
template <typename S>
[[gnu::always_inline]] inline typename S::V exp_of(typename S::V x) {
  using V = typename S::V;
  x = S::min(S::set1(88.0f), S::max(S::set1(-87.33654f), x));
  const V n = S::round(S::mul(x, S::set1(1.44269504088896341f)));
  V r = S::fma(n, S::set1(-0.693359375f), x);
  r = S::fma(n, S::set1(2.12194440e-4f), r);
  V p = S::set1(1.9875691500e-4f);
  p = S::fma(p, r, S::set1(1.3981999507e-3f));
  p = S::fma(p, r, S::set1(8.3334519073e-3f));
  p = S::fma(p, r, S::set1(4.1665795894e-2f));
  p = S::fma(p, r, S::set1(1.6666665459e-1f));
  p = S::fma(p, r, S::set1(5.0000001201e-1f));
  p = S::fma(S::mul(p, r), r, S::add(r, S::set1(1.0f)));
  return S::mul(p, S::exp2_int(n));
}

template <typename S>
[[gnu::always_inline]] inline typename S::V sigmoid_of(typename S::V x) {
  using V = typename S::V;
  const V e = exp_of<S>(S::sub(S::zero(), S::abs(x)));  // in (0, 1]: never overflows
  const V one = S::set1(1.0f);
  const V denominator = S::add(one, e);
  return S::div(S::select_less(x, S::zero(), e, one), denominator);
}

template <typename S>
[[gnu::always_inline]] inline typename S::V tanh_of(typename S::V x) {
  using V = typename S::V;
  const V one = S::set1(1.0f);
  const V a = S::abs(x);
  const V bounded = S::min(S::set1(40.0f), a);
  const V e = exp_of<S>(S::add(bounded, bounded));
  const V large = S::sub(one, S::div(S::set1(2.0f), S::add(e, one)));
  const V z = S::mul(x, x);
  V p = S::set1(-5.70498872745e-3f);
  p = S::fma(p, z, S::set1(2.06390887954e-2f));
  p = S::fma(p, z, S::set1(-5.37397155531e-2f));
  p = S::fma(p, z, S::set1(1.33314422036e-1f));
  p = S::fma(p, z, S::set1(-3.33332819422e-1f));
  const V small = S::fma(S::mul(p, z), x, x);
  return S::select_less(a, S::set1(0.625f), small, S::copy_sign(large, x));
}

template <typename S, typename S::V (*Function)(typename S::V)>
void map_in_place(float* values, int64_t count) {
  int64_t i = 0;
  for (; i + S::kWidth <= count; i += S::kWidth)
    S::store(values + i, Function(S::load(values + i)));
  const int rest = static_cast<int>(count - i);
  if (rest > 0) S::store_first(values + i, Function(S::load_first(values + i, rest)), rest);
}

template <typename S>
void lstm_cell(const LstmCellArgs& args) {
  using V = typename S::V;
  const int64_t n = args.count, step = args.gate_step;
  for (int64_t k = 0; k < n; k += S::kWidth) {
    const int count = n - k < S::kWidth ? static_cast<int>(n - k) : S::kWidth;
    const float* gates = args.gates + k;
    const V i = sigmoid_of<S>(S::load_first(gates, count));
    const V o = sigmoid_of<S>(S::load_first(gates + step, count));
    const V f = sigmoid_of<S>(S::load_first(gates + 2 * step, count));
    const V c = tanh_of<S>(S::load_first(gates + 3 * step, count));
    const V cell = S::fma(f, S::load_first(args.cell + k, count), S::mul(i, c));
    S::store_first(args.cell + k, cell, count);
    S::store_first(args.hidden + k, S::mul(o, tanh_of<S>(cell)), count);
  }
}

// The sum of Term(x) in four vectors of partial sums.
template <typename S, typename Term>
[[gnu::always_inline]] inline float sum_terms(const float* x, int64_t count, Term term) {
  using V = typename S::V;
  V sums[4] = {S::zero(), S::zero(), S::zero(), S::zero()};
  int64_t i = 0;
  for (; i + 4 * S::kWidth <= count; i += 4 * S::kWidth) {
    EDDY_UNROLL for (int u = 0; u < 4; ++u) {
      sums[u] = S::add(sums[u], term(S::load(x + i + u * S::kWidth)));
    }
  }
  for (; i + S::kWidth <= count; i += S::kWidth) sums[0] = S::add(sums[0], term(S::load(x + i)));
  float rest = 0;
  if (i < count) {
    float lanes[S::kWidth];
    const int left = static_cast<int>(count - i);
    S::store(lanes, term(S::load_first(x + i, left)));
    for (int lane = 0; lane < left; ++lane) rest += lanes[lane];
  }
  return S::sum(S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3]))) + rest;
}

template <typename S>
float sum(const float* x, int64_t count) {
  return sum_terms<S>(x, count, [](typename S::V v) { return v; });
}

template <typename S>
float sum_squares(const float* x, float mean, int64_t count) {
  const typename S::V m = S::set1(mean);
  return sum_terms<S>(x, count, [m](typename S::V v) {
    const typename S::V d = S::sub(v, m);
    return S::mul(d, d);
  });
}

template <typename S>
void normalize(const NormalizeArgs& t) {
  using V = typename S::V;
  const V mean = S::set1(t.mean), factor = S::set1(t.factor), shift = S::set1(t.shift);
  for (int64_t i = 0; i < t.count; i += S::kWidth) {
    const int n = t.count - i < S::kWidth ? static_cast<int>(t.count - i) : S::kWidth;
    V v = S::mul(S::sub(S::load_first(t.x + i, n), mean), factor);
    if (t.scale_or_null) v = S::mul(v, S::load_first(t.scale_or_null + i, n));
    v = S::add(v, t.shift_or_null ? S::load_first(t.shift_or_null + i, n) : shift);
    S::store_first(t.y + i, v, n);
  }
}

// Six inputs of one axis.
template <typename S>
[[gnu::always_inline]] inline void winograd_input_axis(const typename S::V (&x)[6],
                                                       typename S::V (&y)[6]) {
  using V = typename S::V;
  const V four = S::set1(4.0f), minus_four = S::set1(-4.0f), minus_five = S::set1(-5.0f);
  const V two = S::set1(2.0f), minus_two = S::set1(-2.0f);
  const V even = S::fma(x[2], minus_four, x[4]), odd = S::fma(x[1], minus_four, x[3]);
  const V near = S::sub(x[4], x[2]), far = S::sub(x[3], x[1]);
  y[0] = S::fma(x[0], four, S::fma(x[2], minus_five, x[4]));
  y[1] = S::add(even, odd);
  y[2] = S::sub(even, odd);
  y[3] = S::fma(far, two, near);
  y[4] = S::fma(far, minus_two, near);
  y[5] = S::fma(x[1], four, S::fma(x[3], minus_five, x[5]));
}

// Weights of one axis: their polynomial at 0, 1, -1, 2, -2, over the differences of these points,
// and its last coefficient.
template <typename S, int kWindow>
[[gnu::always_inline]] inline void winograd_weights_axis(const typename S::V (&w)[kWindow],
                                                         typename S::V (&y)[6]) {
  using V = typename S::V;
  V even = w[0], odd = w[1], even_2 = w[0], odd_2 = S::mul(w[1], S::set1(2.0f));
  if constexpr (kWindow > 2) {
    even = S::add(even, w[2]);
    even_2 = S::fma(w[2], S::set1(4.0f), even_2);
  }
  if constexpr (kWindow > 3) {
    odd = S::add(odd, w[3]);
    odd_2 = S::fma(w[3], S::set1(8.0f), odd_2);
  }
  if constexpr (kWindow > 4) {
    even = S::add(even, w[4]);
    even_2 = S::fma(w[4], S::set1(16.0f), even_2);
  }
  const V near = S::set1(-1.0f / 6), far = S::set1(1.0f / 24);
  y[0] = S::mul(w[0], S::set1(0.25f));
  y[1] = S::mul(S::add(even, odd), near);
  y[2] = S::mul(S::sub(even, odd), near);
  y[3] = S::mul(S::add(even_2, odd_2), far);
  y[4] = S::mul(S::sub(even_2, odd_2), far);
  y[5] = w[kWindow - 1];
}

// Four inputs of one axis: polynomials at 0, 1, -1 and their last coefficient.
template <typename S>
[[gnu::always_inline]] inline void winograd_input_axis(const typename S::V (&x)[4],
                                                       typename S::V (&y)[4]) {
  y[0] = S::sub(x[0], x[2]);
  y[1] = S::add(x[1], x[2]);
  y[2] = S::sub(x[2], x[1]);
  y[3] = S::sub(x[1], x[3]);
}

template <typename S>
[[gnu::always_inline]] inline void winograd_weights_axis(const typename S::V (&w)[3],
                                                         typename S::V (&y)[4]) {
  using V = typename S::V;
  const V half = S::set1(0.5f), even = S::add(w[0], w[2]);
  y[0] = w[0];
  y[1] = S::mul(S::add(even, w[1]), half);
  y[2] = S::mul(S::sub(even, w[1]), half);
  y[3] = w[2];
}

// A tile of kSize x kSize vectors to kPoints x kPoints, by columns and then by rows.
template <typename S, int kSize, int kPoints,
          void (*transform)(const typename S::V (&)[kSize], typename S::V (&)[kPoints])>
[[gnu::always_inline]] inline void winograd_into_products(const WinogradArgs& t) {
  using V = typename S::V;
  V columns[kSize][kPoints];  // by column of the tile, then by transformed row
  for (int c = 0; c < kSize; ++c) {
    V x[kSize];
    const bool is_in = c >= t.first_column && c < t.end_column;
    EDDY_UNROLL for (int r = 0; r < kSize; ++r) {
      x[r] = is_in && r >= t.first_row && r < t.end_row
                 ? S::load(t.from + r * t.from_row + c * S::kWidth)
                 : S::zero();
    }
    transform(x, columns[c]);
  }
  for (int r = 0; r < kPoints; ++r) {
    V x[kSize], y[kPoints];
    EDDY_UNROLL for (int c = 0; c < kSize; ++c) x[c] = columns[c][r];
    transform(x, y);
    EDDY_UNROLL for (int c = 0; c < kPoints; ++c) {
      S::store(t.to + (r * kPoints + c) * t.to_row, y[c]);
    }
  }
}

template <typename S, int kPoints>
void winograd_input(const WinogradArgs& t) {
  winograd_into_products<S, kPoints, kPoints, winograd_input_axis<S>>(t);
}
template <typename S, int kPoints, int kWindow>
void winograd_weights(const WinogradArgs& t) {
  if constexpr (kPoints == 4) {
    winograd_into_products<S, kWindow, kPoints, winograd_weights_axis<S>>(t);
  } else {
    winograd_into_products<S, kWindow, kPoints, winograd_weights_axis<S, kWindow>>(t);
  }
}

// Outputs of one axis: sums of what each point has, times its powers.
template <typename S, int kOutputs>
[[gnu::always_inline]] inline void winograd_output_axis(const typename S::V (&m)[6],
                                                        typename S::V (&y)[kOutputs]) {
  using V = typename S::V;
  const V sum = S::add(m[1], m[2]), difference = S::sub(m[1], m[2]);
  const V sum_2 = S::add(m[3], m[4]), difference_2 = S::sub(m[3], m[4]);
  y[0] = S::add(m[0], S::add(sum, sum_2));
  y[1] = S::fma(difference_2, S::set1(2.0f), difference);
  if constexpr (kOutputs > 2) y[2] = S::fma(sum_2, S::set1(4.0f), sum);
  if constexpr (kOutputs > 3) y[3] = S::fma(difference_2, S::set1(8.0f), difference);
  if constexpr (kOutputs > 4) y[4] = S::fma(sum_2, S::set1(16.0f), sum);
  y[kOutputs - 1] = S::add(m[5], y[kOutputs - 1]);
}

// Two outputs of windows of 3.
template <typename S>
[[gnu::always_inline]] inline void winograd_output_axis(const typename S::V (&m)[4],
                                                        typename S::V (&y)[2]) {
  y[0] = S::add(m[0], S::add(m[1], m[2]));
  y[1] = S::sub(S::sub(m[1], m[2]), m[3]);
}

template <typename S, int kPoints, int kOutputs>
void winograd_output(const WinogradArgs& t) {
  using V = typename S::V;
  const auto transform = [](const V(&m)[kPoints], V(&y)[kOutputs]) __attribute__((always_inline)) {
    if constexpr (kPoints == 4) {
      winograd_output_axis<S>(m, y);
    } else {
      winograd_output_axis<S, kOutputs>(m, y);
    }
  };
  V columns[kPoints][kOutputs];
  for (int c = 0; c < kPoints; ++c) {
    V m[kPoints];
    EDDY_UNROLL for (int r = 0; r < kPoints; ++r) {
      m[r] = S::load(t.from + (r * kPoints + c) * t.from_row);
    }
    transform(m, columns[c]);
  }
  const V bias = t.bias_or_null ? S::load(t.bias_or_null) : S::zero();
  for (int r = 0; r < t.end_row; ++r) {
    V m[kPoints], y[kOutputs];
    EDDY_UNROLL for (int c = 0; c < kPoints; ++c) m[c] = columns[c][r];
    transform(m, y);
    const int64_t row = r * t.to_row;
    for (int c = 0; c < t.end_column; ++c) {
      const int64_t at = row + c * S::kWidth;
      V value = S::add(y[c], bias);
      if (t.add_or_null) value = S::add(value, S::load(t.add_or_null + at));
      if (t.clamp_or_null) value = clamped<S>(value, t.clamp_or_null);
      S::store(t.to + at, value);
    }
  }
}

// Tiles larger than S has registers for are left null; callers look at max_rows, max_vectors.
template <typename S, int M, int N, bool Edge>
constexpr TileKernels::Tile tile_or_null() {
  if constexpr (M <= S::kMaxRows && N <= S::kMaxVectors) return &run_tile<S, M, N, Edge>;
  return nullptr;
}

template <typename S, int M>
constexpr void fill_row(TileKernels& set) {
  set.tile[M - 1][0] = tile_or_null<S, M, 1, false>();
  set.tile[M - 1][1] = tile_or_null<S, M, 2, false>();
  set.tile[M - 1][2] = tile_or_null<S, M, 3, false>();
  set.tile[M - 1][3] = tile_or_null<S, M, 4, false>();
  set.tile_edge[M - 1][0] = tile_or_null<S, M, 1, true>();
  set.tile_edge[M - 1][1] = tile_or_null<S, M, 2, true>();
  set.tile_edge[M - 1][2] = tile_or_null<S, M, 3, true>();
  set.tile_edge[M - 1][3] = tile_or_null<S, M, 4, true>();
}

template <typename S, int N>
constexpr void fill_tall(TileKernels& set) {
  if constexpr (S::tall_rows(N) > 0) {
    constexpr int kRows = S::tall_rows(N);
    set.tall[N - 1] = {kRows, &run_tile<S, kRows, N, false>, &run_tile<S, kRows, N, true>};
  }
}

template <typename S>
constexpr TileKernels make_tile_kernels(Isa isa, const char* name) {
  TileKernels set{};
  set.isa = isa;
  set.name = name;
  set.width = S::kWidth;
  set.max_rows = S::kMaxRows;
  set.max_vectors = S::kMaxVectors;
  set.short_rows = S::kShortRows;
  fill_row<S, 1>(set);
  fill_row<S, 2>(set);
  fill_row<S, 3>(set);
  fill_row<S, 4>(set);
  fill_row<S, 5>(set);
  fill_row<S, 6>(set);
  fill_tall<S, 1>(set);
  fill_tall<S, 2>(set);
  fill_tall<S, 3>(set);
  fill_tall<S, 4>(set);
  set.dot_rows = &dot_rows<S>;
  set.sigmoid = &map_in_place<S, &sigmoid_of<S>>;
  set.lstm_cell = &lstm_cell<S>;
  set.sum = &sum<S>;
  set.sum_squares = &sum_squares<S>;
  set.normalize = &normalize<S>;
  set.tanh = &map_in_place<S, &tanh_of<S>>;
  set.window_max = &window_row<S, MaxFold<S>>;
  set.window_sum = &window_row<S, SumFold<S>>;
  set.window_product = &window_row<S, ProductFold<S>>;
  set.winograd_4.input = &winograd_input<S, 4>;
  set.winograd_4.weights[1] = &winograd_weights<S, 4, 3>;
  set.winograd_4.output[0] = &winograd_output<S, 4, 2>;
  set.winograd_6.input = &winograd_input<S, 6>;
  set.winograd_6.weights[0] = &winograd_weights<S, 6, 2>;
  set.winograd_6.weights[1] = &winograd_weights<S, 6, 3>;
  set.winograd_6.weights[2] = &winograd_weights<S, 6, 4>;
  set.winograd_6.weights[3] = &winograd_weights<S, 6, 5>;
  set.winograd_6.output[0] = &winograd_output<S, 6, 2>;
  set.winograd_6.output[1] = &winograd_output<S, 6, 3>;
  set.winograd_6.output[2] = &winograd_output<S, 6, 4>;
  set.winograd_6.output[3] = &winograd_output<S, 6, 5>;
  return set;
}

}  // namespace
}  // namespace eddy::cpu
