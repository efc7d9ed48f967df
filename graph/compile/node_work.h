// NodeWork: what each node of a graph demands of a machine, and how its loops and branches decide:
// what is known of a graph before any plan.
//
// Kernels measured on a CPU are in a table (cost_table.h); what it lacks, and control nodes, are
// estimates (cost_model.h). For machines whose throughput is known instead (a GPU), kernels are put
// on its roofline. Decisions are those that the table saw or expects; else they are guessed: loops
// run kGuessedTrips times, or as often as a constant trip limit below that allows, and branches are
// taken in turn.
//
// Threads: pure. Cost: O(nodes + uses).
#pragma once

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/costs/cost_table.h"
#include "graph/simulate/fluid_machine.h"
#include "graph/simulate/scenario.h"

namespace eddy {

// A control node's own steps.
struct ControlWork {
  FluidDemand enter, test, advance, leave;  // of a loop
  FluidDemand select, finish;               // of a case-of
  Decision decision;
  bool is_guessed = false;  // and no constant gives as much
};

struct NodeWork {
  std::vector<FluidDemand> nodes;     // by NodeId; of exec nodes
  std::vector<ControlWork> controls;  // by NodeId; of the others
};

// Kernels on one worker each.
NodeWork measured_work(const Graph& graph, const CostTable* measured_or_null);
// Kernels by roofline, where the machine's throughput is known; else measured_work, and on as many
// of the machine's workers as the table has seen an operator make use of.
NodeWork work_on(const Graph& graph, const FluidMachine& machine,
                 const CostTable* measured_or_null);

// "trips of decode (1000), branches of pick (in turn)"; empty: no decision is guessed. At most a
// few are named.
std::string guesses_text(const Graph& graph, const NodeWork& work);

}  // namespace eddy
