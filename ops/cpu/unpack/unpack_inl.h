// The loops, compiled once for each instruction set by the files that include this.
//
// S offers: Words and Floats, vectors of kWidth as the compiler knows them, load_bytes(p) as Words,
// floats_of(words), load(p) and store(p, floats); kLanes, a multiple of it that divides the width
// of the set's panels.
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

// Adds the products of `rows` rows of one vector of columns, which begin a byte. Neighbours in a
// byte have sums of their own, so that they do not wait for each other.
template <int kBits, typename S, int kRows>
[[gnu::always_inline]] inline void add_block(const UnpackedProduct& p, const uint8_t* in,
                                             int64_t first, int64_t rows, typename S::Floats zero,
                                             typename S::Floats scale, typename S::Floats* totals) {
  constexpr int kEach = 8 / kBits, kMask = (1 << kBits) - 1, kSums = kEach > 1 ? 2 : 1;
  typename S::Floats sums[kRows][kSums] = {};
  const float* a = p.a + first;
  for (; rows > 0; rows -= kEach, a += kEach, in += p.width) {
    const typename S::Words words = S::load_bytes(in);
    const int count = rows < kEach ? static_cast<int>(rows) : kEach;
    EDDY_UNPACK_UNROLL for (int part = 0; part < kEach; ++part) {
      // No exit: clang unrolls loops of one end.
      if (part >= count) continue;
      const typename S::Floats weight = S::floats_of((words >> (part * kBits)) & kMask) - zero;
      EDDY_UNPACK_UNROLL for (int m = 0; m < kRows; ++m) {
        sums[m][part % kSums] += a[m * p.a_row + part] * weight;
      }
    }
  }
  EDDY_UNPACK_UNROLL for (int m = 0; m < kRows; ++m) {
    typename S::Floats sum = sums[m][0];
    if constexpr (kSums > 1) sum += sums[m][1];
    totals[m] += sum * scale;
  }
}

template <int kBits, typename S, int kRows>
void multiply(const UnpackedProduct& p) {
  constexpr int kEach = 8 / kBits;
  for (int64_t column = 0; column < p.width; column += S::kWidth) {
    typename S::Floats totals[kRows];
    EDDY_UNPACK_UNROLL for (int m = 0; m < kRows; ++m) {
      totals[m] = S::load(p.c + m * p.width + column);
    }
    const uint8_t* in = p.in + column;
    int64_t at = column;
    for (int64_t first = 0; first < p.depth; first += p.block, at += p.width) {
      const int64_t rows = p.depth - first < p.block ? p.depth - first : p.block;
      const typename S::Floats zero = S::floats_of(S::load_bytes(p.zero + at));
      add_block<kBits, S, kRows>(p, in, first, rows, zero, S::load(p.scale + at), totals);
      in += p.block / kEach * p.width;
    }
    EDDY_UNPACK_UNROLL for (int m = 0; m < kRows; ++m) {
      S::store(p.c + m * p.width + column, totals[m]);
    }
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
