#include "ops/cpu/loops/loops.h"

#include <initializer_list>

#include "ops/cpu/isa/isa.h"
#include "ops/cpu/loops/loop_sets.h"

namespace eddy::cpu {

const LoopSet* loop_set_or_null(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return baseline_loop_set();
    case Isa::kAvx2:
      return instructions().has_avx2 ? avx2_loop_set() : nullptr;
    case Isa::kAvx512:
      return instructions().has_avx512 ? avx512_loop_set() : nullptr;
  }
  return nullptr;
}

const LoopSet& loop_set() {
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
    if (const LoopSet* set = loop_set_or_null(isa)) return *set;
  }
  return *baseline_loop_set();
}

}  // namespace eddy::cpu
