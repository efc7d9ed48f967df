#include "ops/cpu/sample/sample_sets.h"

namespace eddy::cpu {

const SampleLoops& sample_loops(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return sample_loops_avx512();
    case Isa::kAvx2:
      return sample_loops_avx2();
    default:
      return sample_loops_baseline();
  }
}

const RegionLoops& region_loops(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
      return region_loops_avx512();
    case Isa::kAvx2:
      return region_loops_avx2();
    default:
      return region_loops_baseline();
  }
}

}  // namespace eddy::cpu
