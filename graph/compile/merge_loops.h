// merge_loops: while nodes beside each other as one.
//
// A device may drive only a few loops by itself at once, and each round of each of them costs it a
// decision. Loops of one region of which none needs another's results are one loop instead, whose
// round does a round of each that still goes on:
//
//   before   each loop's own `before`; it goes on while its predicate is true and its limit is not
//            reached; all go on while any does
//   after    each loop's own `after`; of a loop that has ended, the carried values stay
//            (Where(goes on, next, last))
//
// Each is as its own rounds have left it, bit for bit; where it was first to end, its nodes run on
// with the values of its end, and what they make is dropped. So their nodes must have no effect
// and find no fault, which is the caller's to know, and be small. What needs one loop's results
// waits for all.
//
// Whether a loop can be merged: why_not_merged(). Which loops can be merged with each other:
// find_siblings().
//
// Names: the loop is "a+b+c", nodes inside are "a/n", so messages name what the model's author
// knows; iterations count alike for all. Errors: those of building the graph.
// Cost: O(nodes); find_siblings(): that, times candidates.
// Source: predicated execution of converged loops, as lanes of a warp run; JAX's vmap of while_loop
// (one predicate for a batch, select by lane) is the same for loops of one body.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

// Empty: its structure allows it. It holds no loop or branch, stacks no rows, forwards what it
// carries as it is and nothing else, and carries tensors of fixed shape that keep it. What has been
// merged is not merged again.
std::string why_not_merged(const Graph& graph, NodeId loop);

// The largest group of candidates (while nodes that can be merged) that stand in one region and
// need nothing of each other, in that region's order; of equal groups the first. Empty: no two.
std::vector<NodeId> find_siblings(const Graph& graph, std::span<const NodeId> candidates);

// The name of the loop that siblings become: "a+b+c".
std::string merged_name(const Graph& graph, std::span<const NodeId> siblings);

// `siblings`: as found. `device`: placement hint of the nodes that decide and keep values.
Result<Graph> merge_loops(Graph graph, const OpTable& ops, std::span<const NodeId> siblings,
                          const std::string& device);

}  // namespace eddy
