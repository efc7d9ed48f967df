// What eddy plan prints of a plan's memory: arenas, which values stand where in them, and which
// have no block and why, each with the region it is made in.
//
// Threads: pure. Cost: O(values and uses).
#pragma once

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/plan/plan.h"
#include "tools/command/console.h"

namespace eddy {

// One line for each arena, then for each region and each thing to be said of its values:
//   "in place in decode/after: sum over x"         x's block, written where x is read last
//   "passed on in decode/after: x"                 another value's memory under a further name
//   "pooled in decode/after: rows"                 of a shape known only while running
//   "no block in root: y; each leaving the graph"
// Values that do not fit into a line stand below it, one a line.
// Constants, the caller's inputs and loop counters are left out.
std::vector<std::string> memory_lines(const Graph& graph, const Plan& plan);

// {"constant_bytes", "fixed_bytes", "fixed_values", "dynamic_values", "arenas":[…], "values":[…]};
// a value is {"value", "region"} and "arena", "size_bytes", "offsets_bytes" and "in_place_of"?, or
// "shares": true, or "no_block": the reason.
Json memory_json(const Graph& graph, const Plan& plan);

// "memory: constants 4 bytes; …"
std::string memory_totals(const Graph& graph);

}  // namespace eddy
