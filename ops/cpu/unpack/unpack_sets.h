// The sets that unpack_sets.cc chooses from; each is made in a file compiled for its instruction
// set.
#pragma once

#include "ops/cpu/unpack/unpack.h"

namespace eddy::cpu {

const UnpackLoops& unpack_loops_baseline();
const UnpackLoops& unpack_loops_avx2();
const UnpackLoops& unpack_loops_avx512();

}  // namespace eddy::cpu
