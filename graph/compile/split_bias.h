// split_bias: a convolution's bias becomes an Add of its own where an elementwise node reads it.
//
//   Relu(Conv(x, w, b))  →  Relu(Add(Conv(x, w), b as [filters, 1, 1]))
//
// For devices whose library adds a bias in a launch of its own: then fuse(), which comes behind it,
// makes one kernel of the Add and what reads it, a residual's Add too, and two launches are left of
// three. Split are constant biases of convolutions on the device whose result one node reads, in
// the same region, elementwise and of the same known shape. The bias is rounded as the library
// does, added to the rounded sum.
//
// Takes the graph over; a graph without such convolutions comes back as it is. `value_devices` as
// in place.h. Errors: those of building the graph. Cost: O(nodes).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct SplitBiasOptions {
  std::string device = "cuda";
  // Whether fuse() could make the node part of a kernel.
  std::function<bool(const Graph& graph, NodeId node)> is_elementwise;
};

struct SplitBiases {
  Graph graph;
  std::vector<uint32_t> value_devices;
  size_t num_split = 0;
};

Result<SplitBiases> split_bias(Graph graph, const OpTable& ops, std::vector<uint32_t> value_devices,
                               const SplitBiasOptions& options);

}  // namespace eddy
