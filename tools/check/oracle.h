// interpret: what a graph means, one node after the other on one thread.
//
// A sequential interpreter of graph/ir. It shares no code with planning or execution: values are
// plain tensors, regions are walked in the order of their node lists, and nothing is reused or
// overwritten. The hash operators are written out here a second time; other operators use the
// library's kernels through ops/contract, so floats agree bit for bit.
//
// Beside the outputs it gives the trip count of every time a loop ran, and a digest of each
// execution of each exec node: node, iteration numbers of the loops around it (outermost first),
// and the digest of its outputs. Node ids are those of the graph given, so a session to compare
// with must be made with SessionOptions::simplify off.
//
// Errors: as a run's: the failing operator's status with its iteration path ("while[3]/case/Mix");
// kResourceExhausted beyond max_executions. Threads: pure. Cost: O(executions); about 200 ns each.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/api/library.h"
#include "runtime/api/tensor.h"
#include "tools/check/digest.h"
#include "tools/check/iterations.h"

namespace eddy::check {

struct OracleOptions {
  bool record_executions = true;
  uint64_t max_executions = 10'000'000;
  // Instead of the library's, the reference kernels for one (ops/reference/reference_kernels.h).
  const KernelRegistry* kernels_or_null = nullptr;
  // Callbacks for each region entered, and for the results of each execution of a node.
  std::function<void(RegionId)> on_region = {};
  std::function<void(NodeId, std::span<const Tensor>)> on_made = {};
};

struct NodeExecution {
  NodeId node;
  Iterations iterations;  // of the enclosing loops
  uint64_t digest = 0;    // combine_digests of its outputs
};

struct TripCount {
  NodeId node;
  Iterations iterations;
  int64_t trips = 0;
};

struct OracleResult {
  NamedTensors outputs;
  std::vector<TripCount> trips;           // in the order in which the loops ended
  std::vector<NodeExecution> executions;  // in the order of a sequential run
};

Result<OracleResult> interpret(const Graph& graph, const Library& library,
                               const NamedTensors& inputs, const OracleOptions& options = {});

// "while[3]/case/Mix": as the runtime writes iteration paths.
std::string execution_path(const Graph& graph, NodeId node, std::span<const int64_t> iterations);

// Empty when both are equal bit for bit; else what differs first, in one line.
std::string difference(const NamedTensors& expected, const NamedTensors& found);

}  // namespace eddy::check
