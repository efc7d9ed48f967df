// plan_memory: lays out the values of fixed shape of a planned graph.
//
// Its steps: which memory each value's names stand for, and which nodes touch it when (storages.h);
// which storages may be in use at once, by happens-before under the plan's streams and regions
// (lifetimes.h); offsets (layout.h) and the lower bound (graph/analysis/antichain.h).
//
// In place: an elementwise node overwrites an input when the operator allows it, it is the last
// to touch that memory in every order, and both have one type size and shape.
//
// Deterministic. Threads: pure. Cost: O(max_compared^2) for the conflicts of the largest blocks,
// 0.1 to 0.5 s for a thousand; all others are placed one by one above them (layout_in_order.h).
// Above kExactBound storages in one region on several streams the bound is the heaviest moment seen
// at a write.
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/plan/memory_plan.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

struct MemoryOptions {
  bool allow_in_place = true;
  size_t max_compared = 4'000;
};

inline constexpr uint32_t kExactBound = 1'200;

// Reads the commands of `plan`; its memory is ignored.
MemoryPlan plan_memory(const Graph& graph, const Schedule& plan, const MemoryOptions& options = {});

}  // namespace eddy
