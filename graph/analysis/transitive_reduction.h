// Transitive reduction: the smallest subset of edges with the same reachability (Nimble's
// minimum equivalent graph, E'). In a DAG it is unique: edge (u, v) is dropped if and only if
// some longer path leads from u to v.
//
// Idea: only an edge that skips a level both in depth and in rank can be redundant. The sources
// of such edges are taken 512 at a time, in an order with short edges; one forward sweep carries
// 512 bits a node and visits only nodes those sources reach, up to their last suspect target.
// Once a node is reached by all 512, its descendants are marked by one byte instead of a row.
//
// Cost: O(edges * nodes / 512) row operations at worst. Near linear when edges are short or
// reachability is sparse. Memory: 64 bytes a node beside two copies of the graph.
// Source: Nimble, section 4.2 and appendix A (lemma 1).
#pragma once

#include <span>
#include <vector>

#include "graph/analysis/dag.h"
#include "graph/base/bit_matrix.h"

namespace eddy {

Dag transitive_reduction(const Dag& dag);

// The same of a whole order, transitive as it is: row a of `later` has all nodes behind a, each of
// a higher number. Cost: O(nodes * (nodes + edges that stay) / 64).
Dag transitive_reduction(const BitMatrix& later);

// The edges of `dag` that are neither in `given` nor implied by a path over given edges and other
// edges of `dag`: the one smallest set that restores dag's order where `given` is granted.
// Sorted by (from, to). `given` may hold duplicates; together they must be acyclic.
std::vector<Edge> edges_beyond(const Dag& dag, std::span<const Edge> given);

}  // namespace eddy
