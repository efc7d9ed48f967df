// The sets that the files compiled for each instruction set offer to loops.cc.
#pragma once

#include "ops/cpu/loops/loops.h"

namespace eddy::cpu {

const LoopSet* baseline_loop_set();
const LoopSet* avx2_loop_set();
const LoopSet* avx512_loop_set();

}  // namespace eddy::cpu
