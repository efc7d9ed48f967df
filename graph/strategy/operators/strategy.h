// Strategy: how each operator is cut into parts, and where each part runs.
//
// An operator's output is cut along its dimensions into equal parts, degree[d] of them along
// dimension d; an operator that sums over an axis (matmul over in_features) may be cut along that
// too: `reduce` parts of it each make a partial sum of a whole tile. Parts are numbered row-major
// over the degrees, the reduction last and fastest. devices[p] is the topology's node that runs
// part p. Cutting the sample dimension is data parallelism, cutting a dimension of weights is
// parameter parallelism, cutting others is attribute parallelism; nothing here tells them apart.
//
// Plain values: nothing is checked here (operator_graph's check_config() does).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/types.h"

namespace eddy {

struct OperatorConfig {
  Dims degree;  // by output dimension, each >= 1
  int64_t reduce = 1;
  std::vector<uint32_t> devices;  // by part

  int64_t num_parts() const {
    int64_t parts = reduce;
    for (const int64_t d : degree) parts *= d;
    return parts;
  }
  bool operator==(const OperatorConfig&) const = default;
};

// By operator, in the order of the operator graph.
using Strategy = std::vector<OperatorConfig>;

}  // namespace eddy
