// UnpackLoops: rows of weights of 2, 4 or 8 bits become floats, or part of a product right away, by
// a loop for each instruction set.
//
//   unpack:   out[r][i] = (bits of in[r / each][i] - zero[i]) * scale[i]
//   product:  c[m][i] += sum over blocks of (sum over their r of
//                                               a[m][r] * (bits - zero[i])) * scale[i]
//
// A byte holds each = 8 / bits rows of one column, the first in its lowest bits. A block's rows
// have the scales and zero points of their columns; unpack stays within one block.
//
// Determinism: unpack gives the same bits with every instruction set: one difference of small
// integers, which is exact, and one product. A product's order of sums depends on rows and blocks,
// and instruction sets differ in the last bits (fused multiply-add). Errors: none; width is a
// multiple of kUnpackLanes. Threads: pure functions.
#pragma once

#include <cstdint>

#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {

// `num_bytes` rows of bytes; in and out are contiguous, rows of `width`.
using UnpackLoop = void (*)(const uint8_t* in, int64_t num_bytes, int64_t width, const float* scale,
                            const uint8_t* zero, float* out);

inline constexpr int kMaxProductRows = 4;
struct UnpackedProduct {
  const uint8_t* in = nullptr;
  int64_t width = 0;             // columns; of scales, zero points and rows of bytes, too
  const float* a = nullptr;      // [m][depth]
  int64_t a_row = 0;             // elements from one row to the next
  int64_t depth = 0, block = 0;  // the last block may be short, and end within a byte
  const float* scale = nullptr;  // [blocks][width]
  const uint8_t* zero = nullptr;
  float* c = nullptr;  // [m][width], added to
};
using ProductLoop = void (*)(const UnpackedProduct& product);

struct UnpackLoops {
  struct OfBits {
    UnpackLoop unpack = nullptr;
    ProductLoop product[kMaxProductRows] = {};  // [m - 1]
  };
  OfBits of_2_bits, of_4_bits, of_8_bits;

  const OfBits& of(int bits) const {
    return bits == 2 ? of_2_bits : bits == 4 ? of_4_bits : of_8_bits;
  }
};

// Of a set that this processor has (tile_kernels().isa).
const UnpackLoops& unpack_loops(Isa isa);

}  // namespace eddy::cpu
