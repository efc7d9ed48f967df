// model_costs: what the nodes of an imported model cost (graph_costs.h).
//
// A node becomes an operator that makes its first output (further outputs count as that); constants
// are its weights, and the graph's own inputs are there from the start. Regions come from the
// operator's type as in regions.h; a node that does not fit its type's rule (dilated windows, say)
// reads all of its inputs. Work is what the operator's schema says (OpDef::flops); views cost
// nothing. Operators, loops and branches are called by their paths. A selector out of range takes
// the default branch, else one without operators.
//
// Times are in seconds: of a node that `costs_or_null` knows on `device`, the measured one, else
// roofline estimates. num_measured says how many nodes were found. Decisions are those of the
// table: a distribution as it is; a record run by run, where it is complete; by the frequencies in
// it, where it was cut or stands in a loop or branch that has a distribution. A decision takes no
// time.
//
// Errors: kInvalidArgument for a node whose shapes are not fully known (fix them with --dim);
// kUnsupported for loops and branches whose trips the table does not know.
// Threads: pure. Cost: linear in the graph and the record.
#pragma once

#include <string_view>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/schedule/costs/cost_table.h"
#include "graph/strategy/scenarios/graph_costs.h"

namespace eddy {

struct ModelCosts {
  GraphCosts costs;            // without strategies
  uint32_t num_operators = 0;  // of all regions
  uint32_t num_measured = 0;
};

Result<ModelCosts> model_costs(const Graph& graph, const OpTable& ops,
                               const CostTable* costs_or_null, std::string_view device);

// A topology of one device, "cpu", with the rates that planning assumes of one core.
Topology cpu_topology();

}  // namespace eddy
