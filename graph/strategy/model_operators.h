// model_operators: the operator graph of an imported model.
//
// Every node of the root becomes an operator that makes the node's first output; inputs made by
// other nodes are its inputs (a node's further outputs count as its first), constants its weights,
// and the graph's own inputs are there from the start. Regions come from the operator's type as in
// regions.h; a node that does not fit its type's rule (dilated windows, say) reads all of its
// inputs. Work is what the operator's schema says (OpDef::flops); views cost nothing.
//
// Times are in seconds: of a node that `costs_or_null` knows on `device`, the measured one, else
// roofline estimates. num_measured says how many nodes were found.
//
// Errors: kInvalidArgument for a node whose shapes are not fully known (fix them with --dim);
// kUnsupported for loops and branches, whose trips a model does not say.
// Threads: pure. Cost: linear in the graph.
#pragma once

#include <string_view>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/schedule/cost_table.h"
#include "graph/strategy/operator_graph.h"

namespace eddy {

struct ModelOperators {
  OperatorGraph graph;
  uint32_t num_measured = 0;
};

Result<ModelOperators> model_operators(const Graph& graph, const OpTable& ops,
                                       const CostTable* costs_or_null, std::string_view device);

// A topology of one device, "cpu", with the rates that planning assumes of one core.
Topology cpu_topology();

}  // namespace eddy
