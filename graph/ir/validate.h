// validate: checks every invariant of a graph, one function for each.
//
// GraphBuilder calls it before a graph leaves; so do importers' tests and fuzzers. It trusts
// nothing but vector bounds being checkable. Cost: O(nodes + values + uses × depth).
#pragma once

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

// kInternal with the broken invariant and the node's path, or ok.
Status validate(const Graph& graph);

namespace validate_internal {
// Every id stored anywhere refers to something that exists.
Status check_ids(const Graph& graph);
// Each node stands in exactly one region's list, the one it names; regions form a tree.
Status check_region_tree(const Graph& graph);
// Each value has exactly one definition, at the place that it records.
Status check_single_assignment(const Graph& graph);
// Each use comes after its definition, in the same region or one around it.
Status check_visibility(const Graph& graph);
// Captures are exactly the outer, non-constant values used in a region or deeper.
Status check_captures(const Graph& graph);
// Numbers of parameters, results, inputs and outputs of control nodes fit together.
Status check_control_arity(const Graph& graph);
}  // namespace validate_internal

}  // namespace eddy
