// The loops, compiled once for each instruction set by the files that include this.
//
// S offers: Words and Floats, vectors of kWidth as the compiler knows them, load_bytes(p) as Words,
// floats_of(words), load(p) and store(p, floats); kLanes, a multiple of it that divides the width
// of the set's panels; kVectors, of columns that a product of one row takes at a time.
#pragma once

#include "ops/cpu/unpack/unpack.h"

#if defined(__clang__)
#define EDDY_UNPACK_UNROLL _Pragma("unroll")
#else
#define EDDY_UNPACK_UNROLL _Pragma("GCC unroll 8")
#endif

namespace eddy::cpu {
namespace {

// One vector of columns after the other, whose scales and zero points stay in registers.
template <int kBits, int kLanes>
void unpack(const uint8_t* __restrict in, int64_t num_bytes, int64_t width,
            const float* __restrict scale, const uint8_t* __restrict zero, float* __restrict out) {
  constexpr int kEach = 8 / kBits, kMask = (1 << kBits) - 1;
  for (int64_t first = 0; first < width; first += kLanes) {
    float factors[kLanes], zeros[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      factors[i] = scale[first + i];
      zeros[i] = static_cast<float>(zero[first + i]);
    }
    for (int64_t row = 0; row < num_bytes; ++row) {
      const uint8_t* from = in + row * width + first;
      for (int part = 0; part < kEach; ++part) {
        float* to = out + (row * kEach + part) * width + first;
        for (int64_t i = 0; i < kLanes; ++i) {
          const int weight = (from[i] >> (part * kBits)) & kMask;
          to[i] = (static_cast<float>(weight) - zeros[i]) * factors[i];
        }
      }
    }
  }
}

// Rows of bytes that are fetched ahead, so that they are there when the third-level cache is slow.
constexpr int64_t kAheadRows = 48;

// Adds the products of `rows` rows of kVectors vectors of columns, which begin a byte. Neighbours
// in a byte have sums of their own, so that they do not wait for each other.
template <int kBits, typename S, int kRows, int kVectors>
[[gnu::always_inline]] inline void add_block(const UnpackedProduct& p, const uint8_t* in,
                                             int64_t first, int64_t rows, int64_t scales,
                                             typename S::Floats (&totals)[kRows][kVectors]) {
  constexpr int kEach = 8 / kBits, kMask = (1 << kBits) - 1, kSums = kEach > 1 ? 2 : 1;
  typename S::Floats sums[kRows][kSums][kVectors] = {}, zero[kVectors];
  EDDY_UNPACK_UNROLL for (int v = 0; v < kVectors; ++v) {
    zero[v] = S::floats_of(S::load_bytes(p.zero + scales + v * S::kWidth));
  }
  const float* a = p.a + first;
  for (; rows > 0; rows -= kEach, a += kEach, in += p.width) {
    const int count = rows < kEach ? static_cast<int>(rows) : kEach;
    __builtin_prefetch(in + kAheadRows * p.width, 0, 2);
    EDDY_UNPACK_UNROLL for (int v = 0; v < kVectors; ++v) {
      const typename S::Words words = S::load_bytes(in + v * S::kWidth);
      EDDY_UNPACK_UNROLL for (int part = 0; part < kEach; ++part) {
        // No exit: clang unrolls loops of one end.
        if (part >= count) continue;
        const typename S::Floats weight = S::floats_of((words >> (part * kBits)) & kMask) - zero[v];
        EDDY_UNPACK_UNROLL for (int m = 0; m < kRows; ++m) {
          sums[m][part % kSums][v] += a[m * p.a_row + part] * weight;
        }
      }
    }
  }
  EDDY_UNPACK_UNROLL for (int v = 0; v < kVectors; ++v) {
    const typename S::Floats scale = S::load(p.scale + scales + v * S::kWidth);
    EDDY_UNPACK_UNROLL for (int m = 0; m < kRows; ++m) {
      typename S::Floats sum = sums[m][0][v];
      if constexpr (kSums > 1) sum += sums[m][1][v];
      totals[m][v] += sum * scale;
    }
  }
}

template <int kBits, typename S, int kRows, int kVectors>
void multiply_columns(const UnpackedProduct& p, int64_t column) {
  constexpr int kEach = 8 / kBits;
  typename S::Floats totals[kRows][kVectors];
  EDDY_UNPACK_UNROLL for (int m = 0; m < kRows; ++m) {
    EDDY_UNPACK_UNROLL for (int v = 0; v < kVectors; ++v) {
      totals[m][v] = S::load(p.c + m * p.width + column + v * S::kWidth);
    }
  }
  const uint8_t* in = p.in + column;
  int64_t scales = column;
  for (int64_t first = 0; first < p.depth; first += p.block, scales += p.width) {
    const int64_t rows = p.depth - first < p.block ? p.depth - first : p.block;
    add_block<kBits, S, kRows, kVectors>(p, in, first, rows, scales, totals);
    in += p.block / kEach * p.width;
  }
  EDDY_UNPACK_UNROLL for (int m = 0; m < kRows; ++m) {
    EDDY_UNPACK_UNROLL for (int v = 0; v < kVectors; ++v) {
      S::store(p.c + m * p.width + column + v * S::kWidth, totals[m][v]);
    }
  }
}

// Few rows take several vectors at a time: their sums do not wait for each other, and a row of a
// panel is read to its end.
template <int kBits, typename S, int kRows>
void multiply(const UnpackedProduct& p) {
  constexpr int kVectors = kRows < S::kVectors ? S::kVectors / kRows : 1;
  int64_t column = 0;
  for (; column + kVectors * S::kWidth <= p.width; column += kVectors * S::kWidth) {
    multiply_columns<kBits, S, kRows, kVectors>(p, column);
  }
  for (; column < p.width; column += S::kWidth) {
    multiply_columns<kBits, S, kRows, 1>(p, column);
  }
}

template <int kBits, typename S>
constexpr UnpackLoops::OfBits kLoopsOfBits = {
    unpack<kBits, S::kLanes>,
    {multiply<kBits, S, 1>, multiply<kBits, S, 2>, multiply<kBits, S, 3>, multiply<kBits, S, 4>}};

template <typename S>
constexpr UnpackLoops kUnpackLoops = {kLoopsOfBits<2, S>, kLoopsOfBits<4, S>, kLoopsOfBits<8, S>};

}  // namespace
}  // namespace eddy::cpu
