#include "ops/cpu/tile/tile.h"

#include <initializer_list>

#include "ops/cpu/isa/isa.h"
#include "ops/cpu/tile/tile_sets.h"

namespace eddy::cpu {

const TileKernels* tile_kernels_or_null(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return instructions().has_avx512 ? &tile_kernels_avx512() : nullptr;
    case Isa::kAvx2:
      return instructions().has_avx2 ? &tile_kernels_avx2() : nullptr;
    case Isa::kBaseline:
      return &tile_kernels_baseline();
  }
  return nullptr;
}

const TileKernels& tile_kernels() {
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
    if (const TileKernels* set = tile_kernels_or_null(isa)) return *set;
  }
  return tile_kernels_baseline();
}

}  // namespace eddy::cpu
