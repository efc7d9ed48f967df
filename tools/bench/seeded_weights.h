// seeded_weights: a network whose weights are all equal gets random ones.
//
// Networks are stored small by making each weight from its shape (ConstantOfShape). A sum of equal
// numbers says nothing of a convolution, and two runtimes that add in another order differ behind a
// Softmax of huge equal sums. Here every float tensor of two and more dimensions that such a node
// makes at the root is drawn from the seed, uniform with the variance 2 / fan-in (He et al. 2015,
// section 2.2), where fan-in is the product of all dimensions but the first.
//
// Errors: the builder's. Cost: O(nodes + elements drawn).
#pragma once

#include <cstdint>
#include <optional>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

// None where the graph has no such weights.
Result<std::optional<Graph>> seeded_weights(const OpTable& ops, Graph graph, uint64_t seed);

}  // namespace eddy
