#include "ops/cpu/byte_tile/byte_tile.h"

#include <initializer_list>

#include "ops/cpu/byte_tile/byte_tile_sets.h"
#include "ops/cpu/isa/isa.h"

namespace eddy::cpu {
namespace {

// The panels and tiles of AVX-512, and rows in matrix registers.
const ByteTileKernels& byte_tile_kernels_amx() {
  static const ByteTileKernels set = [] {
    ByteTileKernels made = byte_tile_kernels_avx512();
    made.isa = ByteIsa::kAmx;
    made.name = "amx";
    made.rows_or_null = multiply_rows_amx;
    made.min_rows = made.max_rows + 1;
    return made;
  }();
  return set;
}

}  // namespace

const ByteTileKernels* byte_tile_kernels_or_null(ByteIsa isa) {
  switch (isa) {
    case ByteIsa::kAmx:
      return may_use_amx() ? &byte_tile_kernels_amx() : nullptr;
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
  for (ByteIsa isa : {ByteIsa::kAmx, ByteIsa::kAvx512Vnni, ByteIsa::kAvx2}) {
    if (const ByteTileKernels* set = byte_tile_kernels_or_null(isa)) return *set;
  }
  return byte_tile_kernels_baseline();
}

}  // namespace eddy::cpu
