// part_products: a product whose result is split becomes a product for each part.
//
//   x ── MatMul(W) ── Add(bias) ── Split   →   x ──┬ MatMul(W's first columns) ── Add ── …
//                                                  └ MatMul(W's next columns)  ── Add ── …
//
// For the CPU: the sums are made where they are read, in place of a pass over memory that copies
// them apart, and the parts can be made side by side: gates of a recurrent cell, and the queries,
// keys and values of a layer of attention.
//
// A Split along the last axis goes up through Adds to MatMul and Gemm with a constant matrix, and
// to constant rows; in one region, where nothing else reads what stands between. Products have at
// least kMinRowsOfParts rows, and parts kMinColumnsOfParts columns, all of known number: smaller
// ones cost more by themselves than a copy does.
//
// Each element is the same sum of the same terms. Takes the graph over; a graph without such
// products comes back as it is. Errors: those of building the graph. Cost: O(nodes), and a copy of
// the matrices that are parted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

constexpr int64_t kMinRowsOfParts = 16;
constexpr int64_t kMinColumnsOfParts = 64;

struct PartedGraph {
  Graph graph;
  size_t num_splits = 0;  // that went
};

Result<PartedGraph> part_products(Graph graph, const OpTable& ops);

}  // namespace eddy
