// OperatorCase: a graph of one operator's node, and its inputs, for eddy bench operators.
//
// The graph's inputs are what a model would compute; weights are constants. Threads: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/io/host_value.h"
#include "graph/ir/graph.h"

namespace eddy {

struct OperatorCase {
  std::string op;    // "Attention"
  std::string size;  // "12 heads of 64, 128 queries, 128 keys"

  struct Made {
    Graph graph;
    std::vector<HostValue> feed;  // as the graph's inputs
  };
  std::function<Result<Made>(const OpTable& ops, uint64_t seed)> make;
};

// Attention, DeformConv, Einsum, GridSample, LpPool, MatMulNBits, MaxRoiPool, NonMaxSuppression and
// RoiAlign, each at three sizes.
std::vector<OperatorCase> operator_cases();

}  // namespace eddy
