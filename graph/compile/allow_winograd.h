// allow_winograd: convolutions of the CPU whose weights are no constants may be computed by
// Winograd's transforms: Conv becomes eddy.WinogradConv where float windows of two axes are known
// to be of sizes that there are transforms for, with strides and dilations of 1 and one group.
//
// Those of constant weights are given blocks of channels (lay_out_images.h), and the transforms
// with them; this is for graphs that train their weights. The kernel decides by the call's shape
// whether they save time. Results are the same within rounding (some 1e-5 of a sum's largest
// terms).
//
// Takes the graph over; without such convolutions it comes back as it is. Errors: those of building
// the graph. Cost: O(nodes).
#pragma once

#include <cstddef>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct WinogradGraph {
  Graph graph;
  size_t num_convolutions = 0;
};

Result<WinogradGraph> allow_winograd(Graph graph, const OpTable& ops);

}  // namespace eddy
