// expand_gradients: nodes Gradient of ONNX's domain ai.onnx.preview.training become the nodes that
// compute them.
//
//   y = f(x, z, w)     Gradient(xs = ["x"], zs = ["z"], y = "y")(x', z')  ──>  df/dx at (x', z', w)
//
// A node names tensors that it can see: its own region's, or of those around it, the innermost of a
// name. What lies between xs and zs and the y is differentiated (differentiate.h), and stands in
// the node's place with the node's inputs for xs and zs. These may be other values than those
// named; where they are the same, the forward pass is there twice, and equal nodes are merged
// later. All elements of y count alike. A node may be behind another one: its gradient is a second
// derivative then.
//
// The graph is taken over, and returned as it is where there is no such node. Errors, with the node
// in front: kInvalidArgument for a name that the node can't see or that stands twice, an input of
// another element type, a y of integers, an x on which y does not depend; kResourceExhausted for
// more than kMaxGradientNodes, or a graph that grows beyond kMaxExpandedNodes; those of
// differentiate(). Cost: O(nodes) a Gradient node. Threads: pure.
#pragma once

#include <cstddef>

#include "graph/base/status.h"
#include "graph/differentiate/gradient_rule.h"
#include "graph/ir/graph.h"

namespace eddy {

inline constexpr size_t kMaxGradientNodes = 64;
inline constexpr size_t kMaxExpandedNodes = 1'000'000;

bool has_gradient_nodes(const Graph& graph);
Result<Graph> expand_gradients(Graph graph, const OpTable& ops, const GradientTable& rules);

}  // namespace eddy
