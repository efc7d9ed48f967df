// UnpackLoops: rows of weights of 2, 4 or 8 bits become floats, by a loop for each instruction set.
//
//   out[r][i] = (bits of in[r / each][i] - zero[i]) * scale[i]       each = 8 / bits rows in a byte
//
// A byte holds `each` rows of one column, the first in its lowest bits; all rows have the scales
// and zero points of their columns, so a call stays within one block.
//
// Determinism: the same bits with every instruction set: one difference of small integers, which is
// exact, and one product. Errors: none; width is a multiple of kUnpackLanes. Threads: pure
// functions.
#pragma once

#include <cstdint>

#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {

// `num_bytes` rows of bytes; in and out are contiguous, rows of `width`.
using UnpackLoop = void (*)(const uint8_t* in, int64_t num_bytes, int64_t width, const float* scale,
                            const uint8_t* zero, float* out);
struct UnpackLoops {
  UnpackLoop of_2_bits = nullptr;
  UnpackLoop of_4_bits = nullptr;
  UnpackLoop of_8_bits = nullptr;

  UnpackLoop of(int bits) const {
    return bits == 2 ? of_2_bits : bits == 4 ? of_4_bits : of_8_bits;
  }
};

// Of a set that this processor has (tile_kernels().isa).
const UnpackLoops& unpack_loops(Isa isa);

}  // namespace eddy::cpu
