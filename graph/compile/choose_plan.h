// choose_plan: the plan that is the fastest on a machine by the fluid model: what --assign auto
// does where costs are known.
//
// Simulated are serial, and rank and matching under caps of 2, 4, 8 … streams up to what the
// machine offers and the caller allows. Parallel plans must beat serial by kMinGain, because a
// plan of one stream runs on the caller's thread and takes no worker; among those that do, the
// fastest wins, of equals the one with fewer streams, then rank. So the same graph, costs and
// machine give the same plan. Where decisions have distributions, expectations over the same few
// scenarios are compared. The plan's notices say what was compared.
//
// A graph of more than max_nodes, or one whose simulation takes more than max_steps although loops
// are cut to a few rounds, is planned by plan_graph's own rule for auto instead, with a notice.
//
// Threads: pure. Cost: at most one plan and 2 * max_steps for each candidate.
#pragma once

#include "graph/ir/graph.h"
#include "graph/schedule/plan_graph.h"
#include "graph/simulate/fluid_machine.h"

namespace eddy {

inline constexpr double kMinGain = 0.05;

struct ChooseOptions {
  PlanOptions planning;  // its policy is not read; its costs and its cap are
  uint32_t max_nodes = 20'000;
  uint64_t max_steps = 200'000;  // of one simulation
};

Plan choose_plan(const Graph& graph, const FluidMachine& machine, const ChooseOptions& options);

}  // namespace eddy
