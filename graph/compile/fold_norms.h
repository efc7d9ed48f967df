// fold_norms: a BatchNormalization behind a Conv becomes part of the Conv's weights and bias.
//
//   factor = scale / sqrt(variance + epsilon)       one for each filter
//   W' = W * factor,   B' = (B - mean) * factor + bias
//
// The new weights are written as nodes of constants, which simplify() then evaluates, so this pass
// stands between two of it: the first makes constants of what is computed of constants. Folded are
// float32 and float64 normalizations with given moments, all of constants, whose input is made by a
// Conv of constant weights that no other node reads.
//
// The result is the same within rounding, not the same bits: a caller that promises equal bits
// leaves the pass out (SessionOptions::folds_norms).
// Takes the graph over; a graph without such pairs comes back as it is. Errors: those of building.
// Cost: O(nodes). Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference" (CVPR 2018), section 3.2.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct FoldedNorms {
  Graph graph;
  size_t num_folded = 0;
};

Result<FoldedNorms> fold_norms(Graph graph, const OpTable& ops);

}  // namespace eddy
