#include "ops/cpu/unpack/unpack_inl.h"
#include "ops/cpu/unpack/unpack_sets.h"

namespace eddy::cpu {

const UnpackLoops& unpack_loops_avx2() { return kUnpackLoops<8>; }

}  // namespace eddy::cpu
