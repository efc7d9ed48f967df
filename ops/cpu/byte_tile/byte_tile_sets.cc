#include "ops/cpu/byte_tile/byte_tile.h"

#include <initializer_list>

#include "ops/cpu/byte_tile/byte_tile_sets.h"
#include "ops/cpu/isa/isa.h"

namespace eddy::cpu {

const ByteTileKernels* byte_tile_kernels_or_null(ByteIsa isa) {
  switch (isa) {
    case ByteIsa::kAvx512Vnni:
      return instructions().has_vnni ? &byte_tile_kernels_avx512() : nullptr;
    case ByteIsa::kAvx2:
      return instructions().has_avx2 ? &byte_tile_kernels_avx2() : nullptr;
    case ByteIsa::kBaseline:
      return &byte_tile_kernels_baseline();
  }
  return nullptr;
}

const ByteTileKernels& byte_tile_kernels() {
  for (ByteIsa isa : {ByteIsa::kAvx512Vnni, ByteIsa::kAvx2}) {
    if (const ByteTileKernels* set = byte_tile_kernels_or_null(isa)) return *set;
  }
  return byte_tile_kernels_baseline();
}

}  // namespace eddy::cpu
