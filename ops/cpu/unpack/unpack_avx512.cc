#include "ops/cpu/unpack/unpack_inl.h"
#include "ops/cpu/unpack/unpack_sets.h"

namespace eddy::cpu {

const UnpackLoops& unpack_loops_avx512() { return kUnpackLoops<16>; }

}  // namespace eddy::cpu
