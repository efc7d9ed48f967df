// All loops of one instruction set; included by one source file for each.
#pragma once

#include "ops/cpu/loops/elementwise_inl.h"
#include "ops/cpu/loops/max_place_inl.h"
#include "ops/cpu/loops/quantize_inl.h"
#include "ops/cpu/loops/reduce_inl.h"
#include "ops/cpu/loops/update_inl.h"

namespace eddy::cpu {
namespace {

constexpr LoopSet make_loop_set(Isa isa) {
  LoopSet set{};
  set.isa = isa;
  put_binary_loops(set);
  put_unary_loops(set);
  put_other_loops(set);
  put_reduce_loops(set);
  put_quantize_loops(set);
  put_update_loops(set);
  put_max_place_loops(set);
  return set;
}

}  // namespace
}  // namespace eddy::cpu
