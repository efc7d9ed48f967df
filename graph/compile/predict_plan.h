// predict_plan: how long a plan runs on a machine, by the fluid model.
//
// fluid_program writes the plan out as the fluid model reads it: regions by RegionId, kernels,
// loops and cases by the order in which nodes stand in the graph.
//
// Errors: those of simulate_fluid. Threads: pure. Cost: that of simulate_fluid.
#pragma once

#include "graph/base/status.h"
#include "graph/compile/node_work.h"
#include "graph/ir/graph.h"
#include "graph/schedule/plan.h"
#include "graph/simulate/fluid_model.h"

namespace eddy {

struct PlanProgram {
  FluidProgram program;
  std::vector<NodeId> kernels;  // FluidProgram's kernels, loops and cases are these nodes
  std::vector<NodeId> loops;
  std::vector<NodeId> cases;
};

PlanProgram fluid_program(const Graph& graph, const Plan& plan, const NodeWork& work);

Result<FluidTimeline> predict_plan(const Graph& graph, const Plan& plan, const NodeWork& work,
                                   const FluidMachine& machine, const FluidOptions& options = {});

}  // namespace eddy
