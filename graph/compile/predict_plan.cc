#include "graph/compile/predict_plan.h"

#include "graph/base/check.h"

namespace eddy {

FluidCosts plan_costs(const Graph& graph, const Plan& plan, const NodeWork& work) {
  FluidCosts costs;
  EDDY_CHECK(work.nodes.size() == graph.num_nodes() && work.controls.size() == graph.num_nodes())
      << work.nodes.size() << " nodes have work, " << graph.num_nodes() << " are in the graph";
  // A kRetain of a loop costs nothing.
  for (const Program::Launch& launch : plan.program.launches) {
    EDDY_DCHECK(launch.node < work.nodes.size()) << "launch of node " << launch.node;
    costs.launches.push_back(work.nodes[launch.node]);
  }
  for (const Program::Loop& loop : plan.program.loops) {
    EDDY_DCHECK(loop.node < work.controls.size()) << "loop of node " << loop.node;
    const ControlWork& control = work.controls[loop.node];
    costs.loops.push_back({.name = graph.path(NodeId(loop.node)),
                           .decision = control.decision,
                           .enter = control.enter,
                           .test = control.test,
                           .advance = control.advance,
                           .leave = control.leave});
  }
  for (const Program::Case& branch : plan.program.cases) {
    EDDY_DCHECK(branch.node < work.controls.size()) << "case of node " << branch.node;
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
