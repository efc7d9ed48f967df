// run_graph: what a graph means, one node after the other, by the reference kernels.
//
//   auto outputs = run_graph(graph, {{"x", TestTensor::scalar(2.0)}});
//
// Shares nothing with planning or execution: loops and branches are walked as graph/ir/graph.h
// says. Errors: the failing node's, with its path; kResourceExhausted after max_trips iterations of
// one loop.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "tests/ops/testing/test_tensor.h"

namespace eddy::testing {

using NamedValues = std::map<std::string, TestValue>;

struct GraphRun {
  NamedValues outputs;
  // Of every time a loop ran or a branch was taken, in order: two runs with the same path can be
  // compared by differences.
  std::vector<int64_t> decisions;
};

Result<GraphRun> run_graph(const Graph& graph, const NamedValues& inputs, int64_t max_trips = 1000);

}  // namespace eddy::testing
