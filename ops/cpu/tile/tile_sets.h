// The sets that tile.cc chooses from; each is made in a file compiled for its instruction set.
#pragma once

#include "ops/cpu/tile/tile.h"

namespace eddy::cpu {

const TileKernels& tile_kernels_baseline();
const TileKernels& tile_kernels_avx2();
const TileKernels& tile_kernels_avx512();

}  // namespace eddy::cpu
