// The sets that byte_tile.cc chooses from; each is made in a file compiled for its instructions.
#pragma once

#include "ops/cpu/byte_tile/byte_tile.h"

namespace eddy::cpu {

const ByteTileKernels& byte_tile_kernels_baseline();
const ByteTileKernels& byte_tile_kernels_avx2();
const ByteTileKernels& byte_tile_kernels_avx512();
// In matrix registers, by panels of the set of AVX-512.
void multiply_rows_amx(const ByteTileArgs& args, int64_t rows);

}  // namespace eddy::cpu
