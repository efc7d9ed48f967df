// find_batch_axes: whether requests may share one run, and along which axes of inputs and outputs.
//
// Requests share a run of a graph by laying their samples behind each other along one dimension,
// which inputs name by a symbol: "N" of x: float[N,64]. That is right where no sample has an
// influence on another. The pass proves it node by node, into loops and branches, by each
// operator's batch rule (graph/ir/batch_rule.h), and returns where the samples lie.
//
// Refused (kUnsupported, at the node's path, with the operator and what it does to samples): what
// crosses samples, what has no rule, loops and branches that a sample decides, host functions. A
// dimension that no input has is kInvalidArgument, with those that there are.
// Give it a simplified graph (simplify.h) before nodes are fused or moved: what is folded is known.
//
// Contract: with the axes returned, a run of inputs joined along them gives each sample the outputs
// of a run of its own, up to rounding; a value that a batch makes and a request alone would not
// (sizes 1 that stretch) fails the run instead. It never gives wrong outputs.
// Threads: none. Cost: O(nodes × carried values) at worst.
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

inline constexpr int kNoSamples = -1;  // the same for all samples

struct BatchAxes {
  std::vector<int> inputs;   // by input: the samples' axis, or kNoSamples
  std::vector<int> outputs;  // by output, likewise
};

Result<BatchAxes> find_batch_axes(const Graph& graph, const std::string& dimension);

}  // namespace eddy
