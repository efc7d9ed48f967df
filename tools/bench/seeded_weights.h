// seeded_weights: a network whose parameters are all equal gets random ones.
//
// Networks are stored small by making each parameter from its shape (ConstantOfShape). A sum of
// equal numbers says nothing of a convolution, and factors of 0.02 in every normalization leave
// nothing of the input in the output, so equal results would prove nothing. Here each float tensor
// that such a node makes at the root is drawn from the seed by what reads it, directly or through a
// change of its shape:
//
//   weight   of Conv, Gemm, MatMul: uniform with the variance 2 / fan-in (He et al. 2015, section
//            2.2), where fan-in is the number of products that make one output; of a Gemm that
//            Softmax reads, 1 / fan-in squared: a mean
//   factor   of Mul, and scale and variance of BatchNormalization: from 0.5 to 1.5; half of that
//            where the product is added to another branch, so that sums of residuals do not grow
//   offset   of Add, biases, mean of BatchNormalization: from -0.1 to 0.1
//
// What else reads one (initial states, tables) keeps its value.
//
// Errors: the builder's. Cost: O(nodes + elements drawn).
#pragma once

#include <cstdint>
#include <optional>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

// None where the graph has no such parameters.
Result<std::optional<Graph>> seeded_weights(const OpTable& ops, Graph graph, uint64_t seed);

}  // namespace eddy
