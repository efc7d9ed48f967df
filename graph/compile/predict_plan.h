// predict_plan: how long a plan runs on a machine: its program, by the fluid model.
//
// plan_costs makes the table of costs that the model reads beside the program.
//
// Errors: those of simulate_fluid. Threads: pure. Cost: that of simulate_fluid.
#pragma once

#include "graph/base/status.h"
#include "graph/compile/node_work.h"
#include "graph/ir/graph.h"
#include "graph/schedule/plan/plan.h"
#include "graph/simulate/fluid_model.h"

namespace eddy {

FluidCosts plan_costs(const Graph& graph, const Plan& plan, const NodeWork& work);

Result<FluidTimeline> predict_plan(const Graph& graph, const Plan& plan, const NodeWork& work,
                                   const FluidMachine& machine, const FluidOptions& options = {});

}  // namespace eddy
