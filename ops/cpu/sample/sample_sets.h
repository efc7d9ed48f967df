// The sets that sample_sets.cc chooses from; each is made in a file compiled for its instruction
// set.
#pragma once

#include "ops/cpu/sample/region.h"
#include "ops/cpu/sample/sample.h"

namespace eddy::cpu {

const SampleLoops& sample_loops_baseline();
const SampleLoops& sample_loops_avx2();
const SampleLoops& sample_loops_avx512();

const RegionLoops& region_loops_baseline();
const RegionLoops& region_loops_avx2();
const RegionLoops& region_loops_avx512();

}  // namespace eddy::cpu
