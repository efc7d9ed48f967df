// Tiles of products, made as tile_inl.h is: over its vector type S, for each instruction set. The
// sums stay in registers over all segments; what TileArgs asks for besides is done to all of them
// at last.
#pragma once

#include "ops/cpu/tile/tile.h"

#if defined(__clang__)
#define EDDY_UNROLL _Pragma("unroll")
#else
#define EDDY_UNROLL _Pragma("GCC unroll 12")
#endif

namespace eddy::cpu {
namespace {

// Enough independent sums to hide the latency of the multiply-add.
constexpr int depth_unroll(int rows, int vectors) {
  return rows * vectors >= 8 ? 1 : rows * vectors >= 4 ? 2 : rows * vectors >= 2 ? 4 : 8;
}

// `Panels`: of long panels, whose rows lie at a distance that is known, and of A step by step.
template <typename S, int M, int N, bool Edge, bool Fetches, bool Panels>
struct TileLoop {
  using V = typename S::V;
  static constexpr int kUnroll = depth_unroll(M, N);
  static constexpr int64_t kLinesAhead = lines_ahead(M, N* S::kWidth);
  V sums[kUnroll][M][N];
  // Of three rows of A one address: their distance is the only register besides.
  static constexpr int kGroup = 3;
  static constexpr int kGroups = (M + kGroup - 1) / kGroup;
  const float* rows[kGroups];
  const float* ahead;
  int64_t ahead_step;  // floats; 0: the same again, which costs little

  [[gnu::always_inline]] void clear() {
    EDDY_UNROLL for (int u = 0; u < kUnroll; ++u) EDDY_UNROLL for (int i = 0; i < M; ++i)
        EDDY_UNROLL for (int j = 0; j < N; ++j) sums[u][i][j] = S::zero();
  }

  // `k`: how far A has been read beyond `rows`.
  [[gnu::always_inline]] void step(int u, int64_t a_row, int64_t k, const float* b, int last) {
    constexpr int kSecondLevel = 2;
    if constexpr (Fetches) {
      EDDY_UNROLL for (int64_t l = 0; l < kLinesAhead; ++l)
          __builtin_prefetch(ahead + l * kLineFloats, 0, kSecondLevel);
      ahead += ahead_step;
    }
    V row[N];
    EDDY_UNROLL for (int j = 0; j < N; ++j) {
      row[j] =
          Edge && j == N - 1 ? S::load_first(b + j * S::kWidth, last) : S::load(b + j * S::kWidth);
    }
    EDDY_UNROLL for (int i = 0; i < M; ++i) {
      const V x = S::set1((rows[i / kGroup] + k)[i % kGroup * a_row]);
      EDDY_UNROLL for (int j = 0; j < N; ++j) sums[u][i][j] = S::fma(x, row[j], sums[u][i][j]);
    }
  }

  [[gnu::always_inline]] void run_segment(const TileArgs& t, const float* a, const float* b,
                                          int last) {
    const int64_t a_row = t.a_row, a_step = t.a_step, b_row = t.b_row;
    EDDY_UNROLL for (int g = 0; g < kGroups; ++g) rows[g] = a + g * kGroup * a_row;
    const auto take = [&](int u) __attribute__((always_inline)) {
      step(u, a_row, 0, b, last);
      EDDY_UNROLL for (int g = 0; g < kGroups; ++g) rows[g] += a_step;
      b += b_row;
    };
    int64_t k = 0;
    // Additions to addresses would take turns with multiplications.
    if constexpr (Panels) {
      constexpr int64_t kRow = S::kWidth * S::kMaxVectors, kSteps = 4;
      for (; k + kSteps <= t.depth; k += kSteps) {
        EDDY_UNROLL for (int64_t i = 0; i < kSteps; ++i) step(0, a_row, i, b + i * kRow, last);
        EDDY_UNROLL for (int g = 0; g < kGroups; ++g) rows[g] += kSteps;
        b += kSteps * kRow;
      }
    }
    for (; k + kUnroll <= t.depth; k += kUnroll) {
      EDDY_UNROLL for (int u = 0; u < kUnroll; ++u) take(u);
    }
    for (; k < t.depth; ++k) take(0);
  }

  [[gnu::always_inline]] V total(int i, int j) const {
    V result = sums[0][i][j];
    EDDY_UNROLL for (int u = 1; u < kUnroll; ++u) result = S::add(result, sums[u][i][j]);
    return result;
  }
};

// A NaN stays a NaN.
template <typename S>
[[gnu::always_inline]] inline typename S::V clamped(typename S::V v, const float* bounds) {
  return S::min(S::set1(bounds[1]), S::max(S::set1(bounds[0]), v));
}

// What becomes of a tile's sums: each step takes all of them, so that a tile that needs none of it
// pays for one question each.
template <typename S, int M, int N>
struct TileResult {
  using V = typename S::V;
  const TileArgs& t;
  const int last;  // valid columns of the last vector
  V values[M][N];

  template <typename Step>
  [[gnu::always_inline]] void each(Step step) {
    EDDY_UNROLL for (int i = 0; i < M; ++i) EDDY_UNROLL for (int j = 0; j < N; ++j) {
      const int64_t at = i * t.c_row + (t.c_vector ? j * t.c_vector : j * S::kWidth);
      step(values[i][j], i, j, at);
    }
  }
  [[gnu::always_inline]] V load(const float* p, int j) const {
    return j == N - 1 ? S::load_first(p, last) : S::load(p);
  }

  [[gnu::always_inline]] void add_bias() {
    EDDY_UNROLL for (int j = 0; j < N; ++j) {
      const V bias = load(t.bias_or_null + j * S::kWidth, j);
      EDDY_UNROLL for (int i = 0; i < M; ++i) values[i][j] = S::add(values[i][j], bias);
    }
  }

  // Lane by lane, as columns lie apart.
  [[gnu::always_inline]] void scatter() {
    EDDY_UNROLL for (int i = 0; i < M; ++i) EDDY_UNROLL for (int j = 0; j < N; ++j) {
      float lanes[S::kWidth];
      S::store(lanes, values[i][j]);
      const int64_t at = i * t.c_row + (t.c_vector ? j * t.c_vector : j * S::kWidth * t.c_column);
      const int count = j == N - 1 ? last : S::kWidth;
      for (int lane = 0; lane < count; ++lane) t.c[at + lane * t.c_column] = lanes[lane];
    }
  }

  [[gnu::always_inline]] void finish() {
    if (t.bias_or_null) add_bias();
    if (t.c_column != 1) return scatter();
    if (t.add_or_null) {
      each([&](V& v, int, int j, int64_t at) { v = S::add(v, load(t.add_or_null + at, j)); });
    }
    if (t.clamp_or_null) {
      each([&](V& v, int, int, int64_t) { v = clamped<S>(v, t.clamp_or_null); });
    }
    each([&](V& v, int, int j, int64_t at) {
      if (j == N - 1) {
        S::store_first(t.c + at, v, last);
      } else {
        S::store(t.c + at, v);
      }
    });
  }
};

template <typename S, int M, int N, bool Edge, bool Fetches, bool Panels = false>
[[gnu::always_inline]] inline void make_tile(const TileArgs& t) {
  const int last = t.columns - (N - 1) * S::kWidth;
  TileLoop<S, M, N, Edge, Fetches, Panels> loop;
  loop.clear();
  loop.ahead = t.ahead_or_null ? t.ahead_or_null : t.c;
  const int64_t step = t.ahead_step ? t.ahead_step : loop.kLinesAhead * kLineFloats;
  loop.ahead_step = t.ahead_or_null ? step : 0;
  for (int64_t s = 0; s < t.num_segments; ++s) loop.run_segment(t, t.a[s], t.b[s], last);
  TileResult<S, M, N> result{t, last, {}};
  EDDY_UNROLL for (int i = 0; i < M; ++i) EDDY_UNROLL for (int j = 0; j < N; ++j)
      result.values[i][j] = loop.total(i, j);
  result.finish();
}

template <typename S, int M, int N>
[[gnu::noinline]] void run_panels(const TileArgs& t) {
  make_tile<S, M, N, false, true, true>(t);
}

// A row alone is made at the speed at which B is loaded: fetching takes turns with that.
template <typename S, int M, int N, bool Edge>
void run_tile(const TileArgs& t) {
  if constexpr (M == 1) {
    if (t.ahead_or_null == nullptr) return make_tile<S, M, N, Edge, false>(t);
  }
  if constexpr (depth_unroll(M, N) == 1 && !Edge) {
    constexpr int64_t kLong = 256;
    const bool is_panel = t.a_step == 1 && t.b_row == S::kWidth * S::kMaxVectors;
    if (is_panel && t.depth >= kLong) return run_panels<S, M, N>(t);
  }
  make_tile<S, M, N, Edge, true>(t);
}

}  // namespace
}  // namespace eddy::cpu
