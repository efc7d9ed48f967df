#include "graph/compile/predict_plan.h"

namespace eddy {

FluidCosts plan_costs(const Graph& graph, const Plan& plan, const NodeWork& work) {
  FluidCosts costs;
  // What a stream retains for a loop takes no work.
  for (const Program::Launch& launch : plan.program.launches) {
    costs.launches.push_back(work.nodes[launch.node]);
  }
  for (const Program::Loop& loop : plan.program.loops) {
    const ControlWork& control = work.controls[loop.node];
    costs.loops.push_back({.name = graph.path(NodeId(loop.node)),
                           .decision = control.decision,
                           .enter = control.enter,
                           .test = control.test,
                           .advance = control.advance,
                           .leave = control.leave});
  }
  for (const Program::Case& branch : plan.program.cases) {
    const ControlWork& control = work.controls[branch.node];
    costs.cases.push_back({.name = graph.path(NodeId(branch.node)),
                           .decision = control.decision,
                           .select = control.select,
                           .finish = control.finish});
  }
  return costs;
}

Result<FluidTimeline> predict_plan(const Graph& graph, const Plan& plan, const NodeWork& work,
                                   const FluidMachine& machine, const FluidOptions& options) {
  return simulate_fluid(plan.program, plan_costs(graph, plan, work), machine, options);
}

}  // namespace eddy
