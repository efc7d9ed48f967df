#include "ops/cpu/unpack/unpack_sets.h"

namespace eddy::cpu {

const UnpackLoops& unpack_loops(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return unpack_loops_avx512();
    case Isa::kAvx2:
      return unpack_loops_avx2();
    default:
      return unpack_loops_baseline();
  }
}

}  // namespace eddy::cpu
