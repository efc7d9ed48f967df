#include "ops/cpu/loops/loop_sets.h"
#include "ops/cpu/loops/make_loop_set_inl.h"

namespace eddy::cpu {

const LoopSet* avx2_loop_set() {
  static constexpr LoopSet kSet = make_loop_set(Isa::kAvx2);
  return &kSet;
}

}  // namespace eddy::cpu
