// The byte tile, written once over a vector type S and included by one source file for each
// instruction set; see ops/cpu/tile/tile_inl.h for why everything here has internal linkage.
//
// S offers: V (32-bit integers), kWidth, kMaxRows, kMaxVectors, kGroup, kElementBytes,
// set1(int32), load(p), load_first(p, n), store_first(p, v, n), add, multiply (low 32 bits),
// dot(sum, a, b): sum plus the products of the kGroup values in each 32-bit lane.
#pragma once

#include "ops/cpu/byte_tile/byte_tile.h"

namespace eddy::cpu {
namespace {

#if defined(__clang__)
#define EDDY_UNROLL _Pragma("unroll")
#else
#define EDDY_UNROLL _Pragma("GCC unroll 8")
#endif

template <typename S, int M, int N>
void run_byte_tile(const ByteTileArgs& t) {
  using V = typename S::V;
  const int last = t.columns - (N - 1) * S::kWidth;
  V sums[M][N];
  EDDY_UNROLL for (int j = 0; j < N; ++j) {
    const int count = j == N - 1 ? last : S::kWidth;
    const V column = S::load_first(t.column_sums + j * S::kWidth, count);
    EDDY_UNROLL for (int i = 0; i < M; ++i) {
      sums[i][j] = S::sub(S::set1(t.row_start[i]), S::multiply(S::set1(t.a_zero[i]), column));
    }
  }
  const char* a = static_cast<const char*>(t.a);
  const char* b = static_cast<const char*>(t.b);
  constexpr int kStep = S::kGroup * S::kElementBytes;  // always 4 bytes: one lane
  static_assert(kStep == 4);
  constexpr int kPanelBytes = S::kMaxVectors * S::kWidth * kStep;
  for (int64_t k = 0; k < t.num_groups; ++k, a += kStep, b += kPanelBytes) {
    V row[N];
    EDDY_UNROLL for (int j = 0; j < N; ++j) row[j] = S::load(b + j * S::kWidth * kStep);
    EDDY_UNROLL for (int i = 0; i < M; ++i) {
      int32_t values;
      __builtin_memcpy(&values, a + i * t.a_row_bytes, sizeof(values));
      const V x = S::set1(values);
      EDDY_UNROLL for (int j = 0; j < N; ++j) sums[i][j] = S::dot(sums[i][j], x, row[j]);
    }
  }
  EDDY_UNROLL for (int i = 0; i < M; ++i) {
    EDDY_UNROLL for (int j = 0; j < N; ++j) {
      S::store_first(t.c + i * t.c_row + j * S::kWidth, sums[i][j], j == N - 1 ? last : S::kWidth);
    }
  }
}

template <typename S, int M, int N>
constexpr ByteTileKernels::Tile byte_tile_or_null() {
  if constexpr (M <= S::kMaxRows && N <= S::kMaxVectors) return &run_byte_tile<S, M, N>;
  return nullptr;
}

template <typename S, int M>
constexpr void fill_byte_row(ByteTileKernels& set) {
  set.tile[M - 1][0] = byte_tile_or_null<S, M, 1>();
  set.tile[M - 1][1] = byte_tile_or_null<S, M, 2>();
  set.tile[M - 1][2] = byte_tile_or_null<S, M, 3>();
  set.tile[M - 1][3] = byte_tile_or_null<S, M, 4>();
}

template <typename S>
constexpr ByteTileKernels make_byte_tile_kernels(ByteIsa isa, const char* name) {
  ByteTileKernels set{};
  set.isa = isa;
  set.name = name;
  set.width = S::kWidth;
  set.max_rows = S::kMaxRows;
  set.max_vectors = S::kMaxVectors;
  set.group = S::kGroup;
  set.element_bytes = S::kElementBytes;
  fill_byte_row<S, 1>(set);
  fill_byte_row<S, 2>(set);
  fill_byte_row<S, 3>(set);
  fill_byte_row<S, 4>(set);
  fill_byte_row<S, 5>(set);
  fill_byte_row<S, 6>(set);
  return set;
}

}  // namespace
}  // namespace eddy::cpu
